/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multipliers for CRCs by carry-less multiplication.
 *
 * A message is a polynomial, and its CRC is the remainder of its product with x^64 (all CRCs here are 64-bit ones, see
 * guard_kernels.h). Folding replaces 16 bytes that are followed by n more bits by their product with x^n modulo the polynomial,
 * added to the 16 bytes n bits later. A register holds 16 bytes as two halves. Each half needs its own multiplier, as the first
 * one is 64 bits before the second.
 *
 * For reflected CRCs, registers hold the bytes in memory order, and the lowest bit is the highest power. The product of two
 * such halves is shifted by one bit, which the multipliers compensate. For the other CRCs, registers hold the 16 bytes in
 * reverse order.
 */
#ifndef SOFTHCA_BLOCK_GUARD_FOLD_H
#define SOFTHCA_BLOCK_GUARD_FOLD_H

#include "block/guard_kernels.h"

/* Multipliers of the low and the high half of a register. */
struct guard_multipliers {
	uint64_t low, high;
};

struct guard_fold {
	/* Multipliers for the last 512 bytes, in pieces of 16. The sum of the products is then divided. */
	struct guard_multipliers last[32] __attribute__((aligned(64)));
	struct guard_multipliers by_64_bytes, by_512_bytes;
	/* Barrett division by the polynomial: x^128 divided by the polynomial, and the polynomial itself, both without x^64. */
	uint64_t quotient, divisor;
	/* Reflected: the lowest coefficient of the divisor, for which `divisor` has no bit, copied to all bits. */
	uint64_t divisor_last;
};

/** Indexed by type; only for CRCs. */
extern struct guard_fold guard_folds[GUARD_TYPE_COUNT];

/** Fills guard_folds. May be called repeatedly. */
void guard_fold_prepare(void);

/** Returns @value times x^@count modulo the polynomial of @type. The highest power is the highest bit, for all types. */
uint64_t guard_times_x(enum guard_type type, uint64_t value, unsigned int count);

/** Returns the 64 bits of @value in reverse order. */
uint64_t guard_reverse(uint64_t value);

#endif
