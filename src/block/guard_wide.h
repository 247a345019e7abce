/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the CRC kernels with registers of 64 bytes (AVX-512 and VPCLMULQDQ) share: everything but the sum over groups
 * of 512 bytes, the inner loop, which each of them has its own of.
 *
 * A block is taken from its end: the groups end where it ends, and before them come up to seven vectors of 64 bytes,
 * of which the first may be cut. That one is filled up with zeros in front, which change no CRC, by a masked load and
 * a masked store: they touch nothing outside of the block.
 *
 * A sum is 64 bytes; its four pieces of 16 bytes, added up, leave the remainder that is the CRC. Four blocks are
 * divided at a time, since the division is a chain of dependent steps.
 */
#ifndef SOFTHCA_BLOCK_GUARD_WIDE_H
#define SOFTHCA_BLOCK_GUARD_WIDE_H

#include "block/guard_fold.h"

#include <immintrin.h>

#define WIDE_FEATURES "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,vpclmulqdq,pclmul,sse4.1"
#define WIDE __attribute__((target(WIDE_FEATURES)))
#define WIDE_INLINE WIDE __attribute__((always_inline)) static inline

enum {
	WIDE_GROUP = 512,
	/* Eight groups and what comes before them. */
	WIDE_LONGEST = 8 * WIDE_GROUP + 7 * 64,
	/* Far enough that a line has come when it is written; reading ahead is done well by the hardware. */
	WIDE_AHEAD = 1024,
};

#define WIDE_TYPES (1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C | 1u << GUARD_CRC64_XP10)

static inline bool wide_supported(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

WIDE_INLINE __m512i wide_add(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

WIDE_INLINE __m512i wide_multipliers(const struct guard_multipliers *pair)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)pair));
}

/* sum + value * by */
WIDE_INLINE __m512i wide_fold(__m512i sum, __m512i value, __m512i by)
{
	return wide_add(sum, _mm512_clmulepi64_epi128(value, by, 0x00), _mm512_clmulepi64_epi128(value, by, 0x11));
}

/* Bytes as in memory to the order of guard_fold.h, and back. */
WIDE_INLINE __m512i wide_order(enum guard_type type, __m512i value)
{
	const __m128i opposite = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	return guard_is_reflected(type) ? value : _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(opposite));
}

/* Where a block is, and how its first vector is cut. */
struct wide_block {
	uintptr_t from, to; /* of the first vector, which may begin before the block */
	size_t vectors;
	__mmask64 mask; /* the bytes of the first vector that belong to the block */
	__m512i begin;  /* the running value where the first bytes of the block are: added to them */
};

/* @bytes is 8 or more, and does not leave 1 to 7 when divided by 64: the running value must fit the first vector. */
WIDE_INLINE struct wide_block wide_block(enum guard_type type, uint64_t begin, size_t bytes)
{
	size_t outside = -bytes % 64;
	uint64_t value = guard_is_reflected(type) ? begin : __builtin_bswap64(begin);

	return (struct wide_block){
		.vectors = (bytes + outside) / 64,
		.mask = ~0ull << outside,
		.begin = _mm512_maskz_expand_epi8(0xffull << outside, _mm512_set1_epi64(value)),
	};
}

WIDE_INLINE __m512i wide_copy_cut(const struct wide_block *block, bool copy)
{
	__m512i value = _mm512_maskz_loadu_epi8(block->mask, (const void *)block->from);

	if (copy)
		_mm512_mask_storeu_epi8((void *)block->to, block->mask, value);
	return value;
}

WIDE_INLINE __m512i wide_copy(uintptr_t from, uintptr_t to, bool copy)
{
	__m512i value = _mm512_loadu_si512((const void *)from);

	if (copy) {
		__builtin_prefetch((const void *)(to + WIDE_AHEAD), 1);
		_mm512_storeu_si512((void *)to, value);
	}
	return value;
}

/*
 * Takes the vectors before the groups. Returns the sum if there are no groups, else what is to be added to the first
 * vector of the first group, which is then the first one of @block.
 */
WIDE_INLINE __m512i wide_lead(enum guard_type type, struct wide_block *block, bool copy)
{
	const struct guard_fold *fold = &guard_folds[type];
	const __m512i by = wide_multipliers(&fold->by_64_bytes);
	size_t lead = block->vectors % 8;
	__m512i sum;

	if (!lead)
		return block->begin;
	sum = wide_order(type, _mm512_xor_si512(wide_copy_cut(block, copy), block->begin));
	for (size_t i = 1; i < lead; i++) {
		__m512i next = wide_order(type, wide_copy(block->from + 64 * i, block->to + 64 * i, copy));

		sum = wide_fold(next, sum, by);
	}
	if (block->vectors < 8)
		return wide_fold(_mm512_setzero_si512(), sum, _mm512_loadu_si512(&fold->last[28]));
	block->from += 64 * lead;
	block->to += 64 * lead;
	block->vectors -= lead;
	block->mask = ~0ull;
	return wide_order(type, wide_fold(_mm512_setzero_si512(), sum, by));
}

/* The pieces of 16 bytes 0 and 2 of @a and those of @b, then pieces 1 and 3; and the same by pairs of pieces. */
WIDE_INLINE __m512i wide_add_neighbours(__m512i a, __m512i b)
{
	__m512i crossed = _mm512_mask_blend_epi64(0xcc, b, a);

	return _mm512_xor_si512(_mm512_mask_blend_epi64(0xcc, a, b), _mm512_shuffle_i64x2(crossed, crossed, 0xb1));
}

WIDE_INLINE __m512i wide_add_halves(__m512i a, __m512i b)
{
	__m512i crossed = _mm512_mask_blend_epi64(0xf0, b, a);

	return _mm512_xor_si512(_mm512_mask_blend_epi64(0xf0, a, b), _mm512_shuffle_i64x2(crossed, crossed, 0x4e));
}

/* Each piece of 16 bytes of the result is the sum of the four pieces of one argument. */
WIDE_INLINE __m512i wide_pieces(__m512i a, __m512i b, __m512i c, __m512i d)
{
	return wide_add_halves(wide_add_neighbours(a, b), wide_add_neighbours(c, d));
}

/* The remainders of up to four sums. */
WIDE_INLINE void wide_divide(enum guard_type type, const __m512i sums[4], size_t count, uint64_t *running)
{
	const struct guard_fold *fold = &guard_folds[type];
	__m512i by = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)&fold->quotient));
	__m512i value = wide_pieces(sums[0], sums[1], sums[2], sums[3]);
	__m512i times;
	uint64_t results[8];

	if (guard_is_reflected(type)) {
		times = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(value, by, 0x00));
		value = wide_add(value, _mm512_clmulepi64_epi128(times, by, 0x10),
				 _mm512_and_si512(_mm512_bslli_epi128(times, 8), _mm512_set1_epi64(fold->divisor_last)));
	} else {
		times = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(value, by, 0x01));
		value = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(times, by, 0x11));
	}
	_mm512_storeu_si512(results, value);
	for (size_t i = 0; i < count; i++)
		running[i] = results[2 * i + guard_is_reflected(type)];
}

/* The inner loop: the sum of the groups of @block, there being any; @first is added to its first vector. */
typedef __m512i wide_sum(enum guard_type type, const struct wide_block *block, __m512i first, bool copy);

WIDE_INLINE __m512i wide_block_sum(wide_sum *sum, enum guard_type type, struct wide_block block, const uint8_t *from,
				   uint8_t *to, bool copy)
{
	__m512i first;

	block.from = (uintptr_t)from - __builtin_ctzll(block.mask);
	block.to = (uintptr_t)to - __builtin_ctzll(block.mask);
	first = wide_lead(type, &block, copy);
	return block.vectors < 8 ? first : sum(type, &block, first, copy);
}

/* copy_blocks() of guard_kernels.h, with @sum, @type and @copy known when it is compiled. */
WIDE_INLINE void wide_copy_blocks(wide_sum *sum, enum guard_type type, bool copy, uint64_t begin,
				  const struct guard_blocks *blocks, size_t count, uint64_t *running)
{
	const struct wide_block block = wide_block(type, begin, blocks->block);
	const uint8_t *from = blocks->from;
	uint8_t *to = blocks->to;

	while (count) {
		size_t now = count < 4 ? count : 4;
		__m512i sums[4] = {_mm512_setzero_si512()};

		for (size_t i = 0; i < now; i++) {
			sums[i] = wide_block_sum(sum, type, block, from, to, copy);
			from += blocks->from_stride;
			to = copy ? to + blocks->to_stride : NULL;
		}
		wide_divide(type, sums, now, running);
		running += now;
		count -= now;
	}
}

typedef void wide_kernel(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			 uint64_t *running);

/* A case of the switch over types in a wide_kernel(), which makes the types known to the compiler. */
#define WIDE_CASE(type, sum)                                                                                           \
	case type:                                                                                                     \
		if (blocks->to)                                                                                        \
			wide_copy_blocks(sum, type, true, begin, blocks, count, running);                              \
		else                                                                                                   \
			wide_copy_blocks(sum, type, false, begin, blocks, count, running);                             \
		break

/* Whether wide_copy_blocks() takes blocks of that many bytes. */
static inline bool wide_takes(size_t bytes)
{
	return bytes && bytes <= WIDE_LONGEST && (bytes % 64 == 0 || bytes % 64 >= 8);
}

/* copy() of guard_kernels.h: up to 7 bytes that are too many, then blocks that the kernel takes. */
static inline uint64_t wide_copy_any(wide_kernel *kernel, enum guard_type type, uint64_t running, uint8_t *to,
				     const uint8_t *from, size_t bytes)
{
	while (bytes) {
		size_t now = bytes <= WIDE_LONGEST ? bytes : WIDE_LONGEST;

		if (!wide_takes(now)) {
			now %= 64;
			running = guard_kernel_table.copy(type, running, to, from, now);
		} else {
			struct guard_blocks block = {.from = from, .to = to, .block = now};

			kernel(type, running, &block, 1, &running);
		}
		from += now;
		to = to ? to + now : NULL;
		bytes -= now;
	}
	return running;
}

#endif
