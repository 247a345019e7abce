/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS (IEEE Std 1619-2007) of one data unit with 64-byte registers (VAES, AVX-512), without OpenSSL's cost of
 * setting a tweak.
 *
 * Expanded keys are only read, by any thread. No branch or address depends on key or data.
 */
#ifndef SOFTHCA_BLOCK_XTS_H
#define SOFTHCA_BLOCK_XTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block/cpu.h"

/* CPU features; 0: no kernel for this architecture. */
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

/** Returns true if this CPU has the features. */
bool xts_supported(void);

/** For tests: makes xts_supported() return false, or undoes that. Filled keys stay valid. */
void xts_forbid(bool forbid);

/** Fills @keys. @key_bytes of both keys: 32 (AES-128) or 64 (AES-256). Only if supported. */
void xts_expand(struct xts_keys *keys, const uint8_t *key, unsigned int key_bytes);

/**
 * Encrypts or decrypts a data unit of @bytes, 16 or more; if not a multiple of 16, with ciphertext stealing (IEEE 1619
 * 5.3.2). @to may equal @from, but not overlap it otherwise.
 */
void xts_transform(const struct xts_keys *keys, bool encrypt, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
		   size_t bytes);

#endif
