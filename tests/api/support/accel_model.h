/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expected results of the operations of an accel module: CRC-32C bit by bit, and AES-XTS by OpenSSL. Programs that include this link
 * libcrypto.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_ACCEL_MODEL_H
#define SOFTHCA_TESTS_API_SUPPORT_ACCEL_MODEL_H

#include <endian.h>
#include <openssl/evp.h>

#include "support/side.h"

/** The register after @length more bytes: reflected polynomial 0x82f63b78, without the final inversion. */
static inline uint32_t model_crc32c(uint32_t crc, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
	}
	return crc;
}

/** One data unit of @length bytes with number @lba. @key has @key_bytes, 32 or 64, Key1 before Key2. */
static inline void model_xts(bool encrypt, const uint8_t *key, unsigned int key_bytes, uint64_t lba, uint8_t *to,
			     const uint8_t *from, size_t length)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	uint64_t tweak[2] = {htole64(lba), 0}; /* IEEE 1619, 5.1: the number as a little-endian array */
	int done;

	assert_int_equal(EVP_CipherInit_ex(context, key_bytes == 32 ? EVP_aes_128_xts() : EVP_aes_256_xts(), NULL, key,
					   (const uint8_t *)tweak, encrypt),
			 1);
	assert_int_equal(EVP_CipherUpdate(context, to, &done, from, (int)length), 1);
	assert_int_equal(done, length);
	EVP_CIPHER_CTX_free(context);
}

/** Copies the bytes of @sges of @side, as they are expected, to @to. Returns how many there are. */
static inline size_t model_gather(const struct side *side, const struct ibv_sge *sges, size_t count, uint8_t *to)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; bytes += sges[i++].length)
		memcpy(to + bytes, side->expected + (sges[i].addr - side_address(side, 0)), sges[i].length);
	return bytes;
}

/** Expects @from, one piece after the other, in @sges of @side. */
static inline void model_scatter(struct side *side, const struct ibv_sge *sges, size_t count, const uint8_t *from)
{
	for (size_t i = 0; i < count; from += sges[i++].length)
		memcpy(side->expected + (sges[i].addr - side_address(side, 0)), from, sges[i].length);
}

/** Expects the CRC-32C that register @crc ends in at @offset: inverted and little-endian. */
static inline void model_expect_crc(struct side *side, size_t offset, uint32_t crc)
{
	crc = htole32(~crc);
	memcpy(side->expected + offset, &crc, sizeof(crc));
}

#endif
