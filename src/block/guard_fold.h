/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multipliers for CRCs by carry-less multiplication.
 *
 * A message is a polynomial, and its CRC is the remainder of its product with x^64 (guard_kernels.h). Folding replaces
 * 16 bytes by their product with x^n modulo the polynomial, added to the 16 bytes n bits later. Each half of a register
 * needs its own multiplier, as the first one is 64 bits before the second.
 *
 * For reflected CRCs, registers hold the bytes in memory order, and the lowest bit is the highest power. The product of
 * two such halves is shifted by one bit, which the multipliers compensate. For the other CRCs, registers hold the bytes
 * in reverse order.
 */
#ifndef SOFTHCA_BLOCK_GUARD_FOLD_H
#define SOFTHCA_BLOCK_GUARD_FOLD_H

#include "block/guard_kernels.h"

/* Multipliers of the halves of a register. */
struct guard_multipliers {
	uint64_t low, high;
};

struct guard_fold {
	/* For the last 512 bytes, in pieces of 16. The sum of the products is then divided. */
	struct guard_multipliers last[32] __attribute__((aligned(64)));
	struct guard_multipliers by_64_bytes, by_512_bytes;
	/* Barrett division: x^128 divided by the polynomial, and the polynomial, both without x^64. */
	uint64_t quotient, divisor;
	/* Reflected: the lowest coefficient of the divisor, for which it has no bit, copied to all bits. */
	uint64_t divisor_last;
};

/** Indexed by type; only for CRCs. */
extern struct guard_fold guard_folds[GUARD_TYPE_COUNT];

/** May be called repeatedly. */
void guard_fold_prepare(void);

/** Returns @value times x^@count modulo the polynomial. The highest power is the highest bit, for all types. */
uint64_t guard_times_x(enum guard_type type, uint64_t value, unsigned int count);

uint64_t guard_reverse(uint64_t value);

#endif
