/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS (IEEE Std 1619-2007) of one data unit with 64-byte registers (VAES, AVX-512), several times as fast as with 16-byte
 * ones, and without what OpenSSL takes to be given a tweak. Only for CPUs that have them: cipher.c has OpenSSL for the others.
 *
 * Keys are expanded once and then only read: any thread may use them at any time. No branch or address depends on a key or
 * on data.
 */
#ifndef SOFTHCA_BLOCK_XTS_H
#define SOFTHCA_BLOCK_XTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AES_BLOCK 16
#define AES_MOST_ROUNDS 14

/* Round keys in the order in which they are used. Secret: whoever holds them wipes them. */
struct xts_keys {
	uint8_t encrypt[AES_MOST_ROUNDS + 1][AES_BLOCK];
	uint8_t decrypt[AES_MOST_ROUNDS + 1][AES_BLOCK];
	uint8_t tweak[AES_MOST_ROUNDS + 1][AES_BLOCK];
	unsigned int rounds; /* 10 or 14; 0: not filled */
};

/** Whether this CPU has the instructions. */
bool xts_supported(void);

/** For tests: as if the CPU had them not, from now on, or as it is. Keys that are filled stay so. */
void xts_forbid(bool forbid);

/** Fills @keys from the two keys of @key, @key_bytes together: 32 (AES-128) or 64 (AES-256). Only if it is supported. */
void xts_expand(struct xts_keys *keys, const uint8_t *key, unsigned int key_bytes);

/**
 * Encrypts or decrypts a data unit of @bytes, 16 or more, with its @tweak. If they are not a multiple of 16, the last
 * ciphertext is stolen from the block before (IEEE 1619 5.3.2). @to may be @from, else they do not overlap.
 */
void xts_transform(const struct xts_keys *keys, bool encrypt, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
		   size_t bytes);

#endif
