/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS as IEEE Std 1619-2007 clause 5 states it, built from single AES blocks: slow, without OpenSSL's XTS.
 */
#ifndef SOFTHCA_TESTS_XTS_MODEL_H
#define SOFTHCA_TESTS_XTS_MODEL_H

#include "test_case.h"

#include <openssl/evp.h>

enum { BLOCK = 16 };

static inline EVP_CIPHER_CTX *model_aes(const uint8_t *key, unsigned int key_bytes, bool encrypt)
{
	EVP_CIPHER_CTX *aes = EVP_CIPHER_CTX_new();

	assert_int_equal(EVP_CipherInit_ex(aes, key_bytes == 16 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(), NULL, key,
					   NULL, encrypt),
			 1);
	EVP_CIPHER_CTX_set_padding(aes, 0);
	return aes;
}

static inline void model_block(EVP_CIPHER_CTX *aes, const uint8_t mask[BLOCK], const uint8_t in[BLOCK],
			       uint8_t out[BLOCK])
{
	uint8_t x[BLOCK];
	int length;

	for (int i = 0; i < BLOCK; i++)
		x[i] = in[i] ^ mask[i];
	assert_int_equal(EVP_CipherUpdate(aes, x, &length, x, BLOCK), 1);
	for (int i = 0; i < BLOCK; i++)
		out[i] = x[i] ^ mask[i];
}

/* Multiplies by alpha in GF(2^128) (5.2); byte 0 is the lowest. */
static inline void model_double(uint8_t mask[BLOCK])
{
	int carry = 0;

	for (int i = 0; i < BLOCK; i++) {
		int next = mask[i] >> 7;

		mask[i] = (uint8_t)(mask[i] << 1 | carry);
		carry = next;
	}
	if (carry)
		mask[0] ^= 0x87;
}

/* Processes one data unit of @bytes, at least BLOCK (5.3.2, 5.4.2). @key: Key1 and Key2, @key_bytes together. */
static inline void model_unit(const uint8_t *key, unsigned int key_bytes, bool encrypt, const uint8_t tweak[BLOCK],
			      uint8_t *to, const uint8_t *from, size_t bytes)
{
	EVP_CIPHER_CTX *data = model_aes(key, key_bytes / 2, encrypt);
	EVP_CIPHER_CTX *tweaks = model_aes(key + key_bytes / 2, key_bytes / 2, true);
	size_t rest = bytes % BLOCK, whole = bytes / BLOCK - (rest ? 1 : 0);
	uint8_t mask[BLOCK], zero[BLOCK] = {0}, last[BLOCK], stolen[BLOCK];

	model_block(tweaks, zero, tweak, mask);
	for (size_t i = 0; i < whole; i++, model_double(mask))
		model_block(data, mask, from + i * BLOCK, to + i * BLOCK);
	if (rest) {
		const uint8_t *in = from + whole * BLOCK;
		uint8_t *out = to + whole * BLOCK;
		uint8_t next[BLOCK];

		memcpy(next, mask, BLOCK);
		model_double(next);
		/* Decryption uses the masks of the last two blocks in reverse order. */
		model_block(data, encrypt ? mask : next, in, stolen);
		memcpy(last, in + BLOCK, rest);
		memcpy(last + rest, stolen + rest, BLOCK - rest);
		model_block(data, encrypt ? next : mask, last, out);
		memcpy(out + BLOCK, stolen, rest);
	}
	EVP_CIPHER_CTX_free(data);
	EVP_CIPHER_CTX_free(tweaks);
}

/* Increments the little-endian number @tweak by one, modulo 2^128. */
static inline void model_increment(uint8_t tweak[BLOCK])
{
	for (int i = 0; i < BLOCK && ++tweak[i] == 0; i++)
		;
}

#endif
