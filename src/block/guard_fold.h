/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multipliers for CRCs by carry-less multiplication.
 *
 * A message is a polynomial, and its CRC the remainder of its product with x^64 (all CRCs here are 64-bit ones, see
 * guard_kernels.h). 16 bytes that are followed by n more bits can be replaced by their product with x^n modulo the
 * polynomial, added to those that stand n bits later: folding. A register has 16 bytes as two halves, each of which
 * needs a multiplier of its own, the first one standing 64 bits before the second.
 *
 * Reflected CRCs have their bytes in registers as they lie in memory, the lowest bit being the highest power; the
 * product of two such halves is one bit short of its place, for which its multiplier makes up. The others have the 16
 * bytes in opposite order.
 */
#ifndef SOFTHCA_BLOCK_GUARD_FOLD_H
#define SOFTHCA_BLOCK_GUARD_FOLD_H

#include "block/guard_kernels.h"

/* What the low half of a register is multiplied by, and the high one. */
struct guard_multipliers {
	uint64_t low, high;
};

struct guard_fold {
	/* The last 512 bytes in pieces of 16, each to be multiplied, added up and divided. */
	struct guard_multipliers last[32] __attribute__((aligned(64)));
	struct guard_multipliers by_64_bytes, by_512_bytes;
	/* Division by the polynomial (Barrett): x^128 divided by it, and itself, both without x^64. */
	uint64_t quotient, divisor;
	/* Reflected: the lowest coefficient of the divisor, for which there is no bit in it, in all bits. */
	uint64_t divisor_last;
};

/** By type, for CRCs. */
extern struct guard_fold guard_folds[GUARD_TYPE_COUNT];

/** Fills guard_folds. May be called again. */
void guard_fold_prepare(void);

/** @value times x^@count modulo the polynomial of @type; here the highest power is the highest bit for all types. */
uint64_t guard_times_x(enum guard_type type, uint64_t value, unsigned int count);

/** The 64 bits of @value in opposite order. */
uint64_t guard_reverse(uint64_t value);

#endif
