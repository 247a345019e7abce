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

uint64_t guard_times_x(enum guard_type type, uint64_t value, unsigned int count)
{
	uint64_t divisor = guard_crcs[type].polynomial;

	while (count--)
		value = value << 1 ^ (divisor & -(value >> 63));
	return value;
}

/* Returns the multipliers for 16 bytes. @power: that of the second half. */
static struct guard_multipliers fold_multipliers(enum guard_type type, uint64_t power)
{
	uint64_t first = guard_times_x(type, power, 64);

	if (guard_is_reflected(type))
		return (struct guard_multipliers){.low = guard_reverse(first), .high = guard_reverse(power)};
	return (struct guard_multipliers){.low = power, .high = first};
}

/* Returns x^128 divided by the polynomial, without its x^64, by long division from the remainder below x^64 on. */
static uint64_t barrett_quotient(uint64_t divisor)
{
	uint64_t bits = 0, rest = divisor;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t highest = rest >> 63;

		bits |= highest << bit;
		rest = rest << 1 ^ (highest ? divisor : 0);
	}
	return bits;
}

static void guard_fold_fill(struct guard_fold *fold, enum guard_type type)
{
	bool reflected = guard_is_reflected(type);
	uint64_t divisor = guard_crcs[type].polynomial;
	uint64_t power = guard_times_x(type, 1, 64 - reflected);

	for (unsigned int halves = 1; halves <= 64; halves++) {
		struct guard_multipliers pair = fold_multipliers(type, power);

		/* Shifted by the bytes that follow, and by the 64 bits appended for the CRC. */
		if (halves % 2 == 1)
			fold->last[31 - halves / 2] = pair;
		if (halves == 8)
			fold->by_64_bytes = pair;
		if (halves == 64)
			fold->by_512_bytes = pair;
		power = guard_times_x(type, power, 64);
	}
	fold->quotient = barrett_quotient(divisor);
	fold->divisor = divisor;
	if (reflected) {
		/* Shifted by one bit, as products of reflected values are; the coefficient of x^0 is lost. */
		fold->quotient = guard_reverse(fold->quotient) << 1;
		fold->divisor = guard_reverse(divisor) << 1;
		fold->divisor_last = divisor & 1 ? ~0ull : 0;
	}
}

void guard_fold_prepare(void)
{
	for (unsigned int type = 0; type < GUARD_TYPE_COUNT; type++)
		if (guard_is_crc(type))
			guard_fold_fill(&guard_folds[type], type);
}
