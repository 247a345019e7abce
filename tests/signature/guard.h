/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of signatures, bit by bit: the CRCs and the checksum of mlx5-formats 5.1, which
 * mlx5dv_wr_set_mkey_sig_block(3) names by standards. Slow and simple; shares no code with the sources.
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_GUARD_H
#define SOFTHCA_TESTS_SIGNATURE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guard { GUARD_T10_CRC, GUARD_T10_CSUM, GUARD_CRC32, GUARD_CRC32C, GUARD_CRC64, GUARDS };

enum { GUARD_MOST = 8 };

/** Returns the bytes of a guard: 2, 4 or 8. */
size_t guard_bytes(enum guard guard);

/**
 * Writes the guard of @length bytes at @data to @field, in the byte order of memory. @ones: the seed is all ones,
 * otherwise 0.
 */
void guard_compute(enum guard guard, bool ones, const uint8_t *data, size_t length, uint8_t *field);

/** Reads @count bytes, the first one the most significant. */
uint64_t big_endian(const uint8_t *bytes, size_t count);

#endif
