/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS (IEEE Std 1619-2007) of one data unit with 64-byte registers (VAES, AVX-512): several times as fast as with 16-byte
 * registers, and without OpenSSL's cost of setting a tweak. On CPUs without these instructions, cipher.c uses OpenSSL.
 *
 * Keys are expanded once and only read afterwards, so any thread may use them at any time. No branch or address depends on key
 * or data.
 */
#ifndef SOFTHCA_BLOCK_XTS_H
#define SOFTHCA_BLOCK_XTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block/cpu.h"

/* Features that the CPU must have; 0: this architecture has no such kernel. */
#ifdef __x86_64__
#define XTS_NEEDS                                                                                                      \
	(CPU_AVX512F | CPU_AVX512BW | CPU_AVX512VL | CPU_AVX512DQ | CPU_VPCLMULQDQ | CPU_AES | CPU_SSE4_1 | CPU_VAES)
#else
#define XTS_NEEDS 0
#endif

#define AES_BLOCK 16
#define AES_MOST_ROUNDS 14

/* Round keys in the order of use. Secret: the owner wipes them. */
struct xts_keys {
	uint8_t encrypt[AES_MOST_ROUNDS + 1][AES_BLOCK];
	uint8_t decrypt[AES_MOST_ROUNDS + 1][AES_BLOCK];
	uint8_t tweak[AES_MOST_ROUNDS + 1][AES_BLOCK];
	unsigned int rounds; /* 10 or 14; 0: not filled */
};

/** Returns true if this CPU has the instructions. */
bool xts_supported(void);

/** For tests: makes xts_supported() return false from now on, or undoes that. Keys that are already filled stay valid. */
void xts_forbid(bool forbid);

/** Fills @keys from the two keys of @key, @key_bytes together: 32 (AES-128) or 64 (AES-256). Only if it is supported. */
void xts_expand(struct xts_keys *keys, const uint8_t *key, unsigned int key_bytes);

/**
 * Encrypts or decrypts a data unit of @bytes, 16 or more, with its @tweak. If @bytes is not a multiple of 16, uses ciphertext
 * stealing (IEEE 1619 5.3.2). @to may equal @from; otherwise they must not overlap.
 */
void xts_transform(const struct xts_keys *keys, bool encrypt, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
		   size_t bytes);

#endif
