/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs by carry-less multiplication of 64 bytes: each vector is folded to its position in the next group. */
#include "block/guard_kernels.h"

#ifdef __x86_64__
#include "block/guard_wide.h"

/* Multiplications fill the CPU's instruction window, so without prefetching, loads are issued too late. */
WIDE_INLINE __m512i copy_ahead(const uint8_t *from, uint8_t *to, bool copy)
{
	_mm_prefetch(from + WIDE_AHEAD, _MM_HINT_T0);
	if (copy)
		__builtin_prefetch(to + WIDE_AHEAD / 2, 1);
	return wide_copy(from, to, copy);
}

WIDE_INLINE __m512i vpclmul_sum_groups(enum guard_type type, const uint8_t *from, uint8_t *to, size_t groups,
				       __m512i first, bool copy, bool single, bool far)
{
	const struct guard_fold *fold = &guard_folds[type];
	const __m512i by = wide_multipliers(&fold->by_512_bytes);
	__m512i value[8], even = _mm512_setzero_si512(), odd = even;

	(void)far;
#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i++)
		value[i] = wide_order(type, i ? copy_ahead(from + 64 * i, to + 64 * i, copy) : first);
	for (size_t left = single ? 0 : groups - 1; left; left--) {
		from += WIDE_GROUP;
		to += WIDE_GROUP;
#pragma GCC unroll 8
		for (size_t i = 0; i < 8; i++)
			value[i] =
				wide_fold(wide_order(type, copy_ahead(from + 64 * i, to + 64 * i, copy)), value[i], by);
	}
#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i += 2) {
		__m512i last = _mm512_load_si512(&fold->last[4 * i]), next = _mm512_load_si512(&fold->last[4 * i + 4]);

		/* Forces one load; gcc would load them for each half. */
		__asm__("" : "+v"(last), "+v"(next));
		even = wide_fold(even, value[i], last);
		odd = wide_fold(odd, value[i + 1], next);
	}
	return _mm512_xor_si512(even, odd);
}

WIDE_INSTANCES(t10_crc, WIDE_FEATURES, vpclmul_sum_groups, GUARD_T10_CRC)
WIDE_INSTANCES(crc32, WIDE_FEATURES, vpclmul_sum_groups, GUARD_CRC32)
WIDE_INSTANCES(crc32c, WIDE_FEATURES, vpclmul_sum_groups, GUARD_CRC32C)
WIDE_INSTANCES(crc64, WIDE_FEATURES, vpclmul_sum_groups, GUARD_CRC64_XP10)

static wide_instance *const (*instances[GUARD_TYPE_COUNT])[2] = {
	[GUARD_T10_CRC] = t10_crc,
	[GUARD_CRC32] = crc32,
	[GUARD_CRC32C] = crc32c,
	[GUARD_CRC64_XP10] = crc64,
};

WIDE static void vpclmul_copy_blocks(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks,
				     size_t count, uint64_t *guards)
{
	wide_dispatch(instances[type], type, begin, blocks, count, guards);
}

static uint64_t vpclmul_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return wide_copy_any(vpclmul_copy_blocks, type, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_vpclmulqdq = {
	.name = "vpclmulqdq",
	.needs = WIDE_NEEDS,
	.prepare = guard_fold_prepare,
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C | 1u << GUARD_CRC64_XP10,
	.takes = wide_takes,
	.copy = vpclmul_copy,
	.copy_blocks = vpclmul_copy_blocks,
};
#endif
