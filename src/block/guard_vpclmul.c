/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs with carry-less multiplications of 64 bytes: each vector of a group is folded to its place in the next one. */
#include "block/guard_kernels.h"

#ifdef __x86_64__
#include "block/guard_wide.h"

WIDE_INLINE __m512i sum_groups(enum guard_type type, const struct wide_block *block, __m512i first, bool copy)
{
	const struct guard_fold *fold = &guard_folds[type];
	const __m512i by = wide_multipliers(&fold->by_512_bytes);
	uintptr_t from = block->from, to = block->to;
	__m512i value[8], even = _mm512_setzero_si512(), odd = even;

	value[0] = wide_order(type, _mm512_xor_si512(wide_copy_cut(block, copy), first));
#pragma GCC unroll 8
	for (size_t i = 1; i < 8; i++)
		value[i] = wide_order(type, wide_copy(from + 64 * i, to + 64 * i, copy));
	for (size_t left = block->vectors - 8; left; left -= 8) {
		from += WIDE_GROUP;
		to += WIDE_GROUP;
#pragma GCC unroll 8
		for (size_t i = 0; i < 8; i++)
			value[i] = wide_fold(wide_order(type, wide_copy(from + 64 * i, to + 64 * i, copy)),
					     value[i], by);
	}
#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i += 2) {
		even = wide_fold(even, value[i], _mm512_loadu_si512(&fold->last[4 * i]));
		odd = wide_fold(odd, value[i + 1], _mm512_loadu_si512(&fold->last[4 * i + 4]));
	}
	return _mm512_xor_si512(even, odd);
}

WIDE static void kernel(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			uint64_t *running)
{
	switch (type) {
		WIDE_CASE(GUARD_T10_CRC, sum_groups);
		WIDE_CASE(GUARD_CRC32, sum_groups);
		WIDE_CASE(GUARD_CRC32C, sum_groups);
		WIDE_CASE(GUARD_CRC64_XP10, sum_groups);
	default:
		break;
	}
}

static uint64_t copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return wide_copy_any(kernel, type, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_vpclmulqdq = {
	.name = "vpclmulqdq",
	.supported = wide_supported,
	.prepare = guard_fold_prepare,
	.types = WIDE_TYPES,
	.takes = wide_takes,
	.copy = copy,
	.copy_blocks = kernel,
};
#endif
