/* SPDX-License-Identifier: BSD-2-Clause */
/* AES-XTS from single AES blocks. */
#include "block/xts_blocks.h"

#include <string.h>

enum { AES_BLOCK = 16 };

static bool ecb_block(EVP_CIPHER_CTX *ecb, const uint8_t mask[AES_BLOCK], uint8_t *to, const uint8_t *from)
{
	uint8_t block[AES_BLOCK];
	int written = 0;
	bool good;

	for (int i = 0; i < AES_BLOCK; i++)
		block[i] = from[i] ^ mask[i];
	good = EVP_CipherUpdate(ecb, block, &written, block, AES_BLOCK) && written == AES_BLOCK;
	for (int i = 0; i < AES_BLOCK; i++)
		to[i] = block[i] ^ mask[i];
	/* If OpenSSL refused, it still has plaintext. */
	explicit_bzero(block, sizeof(block));
	return good;
}

/* Multiplies by x (IEEE 1619 5.2). */
static void next_mask(uint8_t mask[AES_BLOCK])
{
	uint8_t carry = 0;

	for (int i = 0; i < AES_BLOCK; i++) {
		uint8_t out = mask[i] >> 7;

		mask[i] = (uint8_t)(mask[i] << 1 | carry);
		carry = out;
	}
	mask[0] ^= (uint8_t)(carry * 0x87);
}

/*
 * Steals ciphertext (IEEE 1619 5.3.2): the last whole block at @to is encrypted already, and @part bytes follow it in
 * @from.
 */
static bool ecb_steal_ciphertext(EVP_CIPHER_CTX *ecb, const uint8_t mask[AES_BLOCK], uint8_t *to, const uint8_t *from,
				 size_t part)
{
	uint8_t last[AES_BLOCK], stolen[AES_BLOCK];
	bool good;

	memcpy(stolen, to, AES_BLOCK);
	memcpy(last, from + AES_BLOCK, part);
	memcpy(last + part, stolen + part, AES_BLOCK - part);
	good = ecb_block(ecb, mask, to, last);
	memcpy(to + AES_BLOCK, stolen, part);
	explicit_bzero(last, sizeof(last));
	return good;
}

bool xts_encrypt_by_blocks(EVP_CIPHER_CTX *ecb, const uint8_t tweak[16], uint8_t *to, const uint8_t *from, size_t bytes)
{
	static const uint8_t no_mask[AES_BLOCK];
	const size_t whole = bytes - bytes % AES_BLOCK, part = bytes % AES_BLOCK;
	uint8_t mask[AES_BLOCK];
	bool good = ecb_block(ecb, no_mask, mask, tweak);

	for (size_t i = 0; good && i < whole; i += AES_BLOCK, next_mask(mask))
		good = ecb_block(ecb, mask, to + i, from + i);
	if (good && part)
		good = ecb_steal_ciphertext(ecb, mask, to + whole - AES_BLOCK, from + whole - AES_BLOCK, part);
	return good;
}
