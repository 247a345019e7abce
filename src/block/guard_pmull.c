/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs by carry-less multiplication on aarch64 (PMULL), as in guard_clmul.c. */
#include "block/guard_fold.h"
#include "core/compiler.h"

#ifdef __aarch64__
#include <arm_neon.h>

#define PMULL __attribute__((target("+crypto")))
#define PMULL_INLINE PMULL static inline SPECIALISED

PMULL_INLINE uint64x2_t pmull_multiply(uint64_t a, uint64_t b)
{
	return vreinterpretq_u64_p128(vmull_p64((poly64_t)a, (poly64_t)b));
}

PMULL_INLINE uint64_t pmull_low(uint64x2_t value)
{
	return vgetq_lane_u64(value, 0);
}

PMULL_INLINE uint64_t pmull_high(uint64x2_t value)
{
	return vgetq_lane_u64(value, 1);
}

PMULL_INLINE uint64x2_t pmull_fold(uint64x2_t sum, uint64x2_t value, const struct guard_multipliers *by)
{
	sum = veorq_u64(sum, pmull_multiply(pmull_low(value), by->low));
	return veorq_u64(sum, pmull_multiply(pmull_high(value), by->high));
}

PMULL_INLINE uint64x2_t pmull_order(enum guard_type type, uint8x16_t value)
{
	if (!guard_is_reflected(type)) {
		value = vrev64q_u8(value);
		value = vextq_u8(value, value, 8);
	}
	return vreinterpretq_u64_u8(value);
}

PMULL_INLINE uint64x2_t pmull_copy_part(enum guard_type type, uint8_t *to, const uint8_t *from, bool copy)
{
	uint8x16_t value = vld1q_u8(from);

	if (copy)
		vst1q_u8(to, value);
	return pmull_order(type, value);
}

PMULL_INLINE uint64_t pmull_divide(enum guard_type type, uint64x2_t value)
{
	const struct guard_fold *constants = &guard_folds[type];
	uint64x2_t times;

	if (guard_is_reflected(type)) {
		times = veorq_u64(value, pmull_multiply(pmull_low(value), constants->quotient));
		value = veorq_u64(value, pmull_multiply(pmull_low(times), constants->divisor));
		return pmull_high(value) ^ (pmull_low(times) & constants->divisor_last);
	}
	times = veorq_u64(value, pmull_multiply(pmull_high(value), constants->quotient));
	value = veorq_u64(value, pmull_multiply(pmull_high(times), constants->divisor));
	return pmull_low(value);
}

PMULL_INLINE uint64_t pmull_fold_all(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				     size_t bytes, bool copy)
{
	const struct guard_fold *constants = &guard_folds[type];
	const struct guard_multipliers by = constants->by_64_bytes;
	uint64x2_t begin = vcombine_u64(vcreate_u64(running), vcreate_u64(0)), value[4], sum = vdupq_n_u64(0);

	if (!guard_is_reflected(type))
		begin = vcombine_u64(vcreate_u64(0), vcreate_u64(running));
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		value[i] = pmull_copy_part(type, to + 16 * i, from + 16 * i, copy);
	value[0] = veorq_u64(value[0], begin);
	for (size_t done = 64; done < bytes; done += 64) {
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++)
			value[i] = pmull_fold(pmull_copy_part(type, to + done + 16 * i, from + done + 16 * i, copy),
					      value[i], &by);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		sum = pmull_fold(sum, value[i], &constants->last[28 + i]);
	return pmull_divide(type, sum);
}

PMULL_INLINE uint64_t pmull_fold_type(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				      size_t bytes)
{
	if (to)
		return pmull_fold_all(type, running, to, from, bytes, true);
	return pmull_fold_all(type, running, (uint8_t *)from, from, bytes, false);
}

PMULL static uint64_t pmull_fold_any(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				     size_t bytes)
{
	switch (type) {
	case GUARD_T10_CRC:
		return pmull_fold_type(GUARD_T10_CRC, running, to, from, bytes);
	case GUARD_CRC32:
		return pmull_fold_type(GUARD_CRC32, running, to, from, bytes);
	case GUARD_CRC32C:
		return pmull_fold_type(GUARD_CRC32C, running, to, from, bytes);
	default:
		return pmull_fold_type(GUARD_CRC64_XP10, running, to, from, bytes);
	}
}

static uint64_t pmull_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t whole = bytes & ~(size_t)63;

	if (whole)
		running = pmull_fold_any(type, running, to, from, whole);
	if (whole < bytes)
		running = guard_kernel_table.copy(type, running, to ? to + whole : NULL, from + whole, bytes - whole);
	return running;
}

const struct guard_kernel guard_kernel_pmull = {
	.name = "pmull",
	.needs = CPU_PMULL,
	.prepare = guard_fold_prepare,
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C | 1u << GUARD_CRC64_XP10,
	.copy = pmull_copy,
};
#endif
