/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/guard_fold.h"

struct guard_fold guard_folds[GUARD_TYPE_COUNT];

uint64_t guard_reverse(uint64_t value)
{
	uint64_t reversed = 0;

	for (int bit = 0; bit < 64; bit++)
		reversed |= (value >> bit & 1) << (63 - bit);
	return reversed;
}

static uint64_t polynomial(enum guard_type type)
{
	return guard_is_reflected(type) ? guard_reverse(guard_crcs[type].polynomial) : guard_crcs[type].polynomial;
}

uint64_t guard_times_x(enum guard_type type, uint64_t value, unsigned int count)
{
	uint64_t divisor = polynomial(type);

	while (count--)
		value = value << 1 ^ (value >> 63 ? divisor : 0);
	return value;
}

static struct guard_multipliers multipliers(enum guard_type type, unsigned int bits)
{
	bool reflected = guard_is_reflected(type);
	uint64_t second = guard_times_x(type, 1, reflected ? bits - 1 : bits);
	uint64_t first = guard_times_x(type, second, 64);

	if (reflected)
		return (struct guard_multipliers){.low = guard_reverse(first), .high = guard_reverse(second)};
	return (struct guard_multipliers){.low = second, .high = first};
}

/* x^128 divided by the polynomial, without its x^64: schoolbook division, starting from what is left below x^64. */
static uint64_t quotient(uint64_t divisor)
{
	uint64_t bits = 0, rest = divisor;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t highest = rest >> 63;

		bits |= highest << bit;
		rest = rest << 1 ^ (highest ? divisor : 0);
	}
	return bits;
}

static void fill(struct guard_fold *fold, enum guard_type type)
{
	uint64_t divisor = polynomial(type);

	for (unsigned int i = 0; i < 32; i++)
		fold->last[i] = multipliers(type, 128 * (31 - i) + 64);
	fold->by_64_bytes = multipliers(type, 512);
	fold->by_512_bytes = multipliers(type, 4096);
	fold->quotient = quotient(divisor);
	fold->divisor = divisor;
	if (guard_is_reflected(type)) {
		/* Moved by the bit that a product is short of; so the coefficient of x^0 has no place. */
		fold->quotient = guard_reverse(fold->quotient) << 1;
		fold->divisor = guard_reverse(divisor) << 1;
		fold->divisor_last = divisor & 1 ? ~0ull : 0;
	}
}

void guard_fold_prepare(void)
{
	for (unsigned int type = 0; type < GUARD_TYPE_COUNT; type++)
		if (guard_is_crc(type))
			fill(&guard_folds[type], type);
}
