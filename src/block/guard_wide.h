/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the CRC kernels with 64-byte registers (AVX-512 and VPCLMULQDQ) share: all but the inner loop, the sum over
 * groups of 512 bytes.
 *
 * A block is up to seven vectors of 64 bytes, followed by groups that end where it ends. A cut first vector is padded
 * with leading zeros, which do not change the CRC.
 *
 * The four pieces of 16 bytes of a sum, added up, are congruent to the block, so their remainder is the CRC. Four blocks
 * are divided at a time, as each division is a chain of dependent steps.
 *
 * Loops over blocks are not unrolled and keep their state in registers: hardware prefetchers track load instructions,
 * and a sum on the stack waits for all earlier stores.
 */
#ifndef SOFTHCA_BLOCK_GUARD_WIDE_H
#define SOFTHCA_BLOCK_GUARD_WIDE_H

#include "block/guard_fold.h"
#include "core/compiler.h"

#include <immintrin.h>

#define WIDE_FEATURES "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,vpclmulqdq,pclmul,sse4.1"
#define WIDE __attribute__((target(WIDE_FEATURES)))
#define WIDE_INLINE WIDE static inline SPECIALISED

enum {
	WIDE_GROUP = 512,
	/* Eight groups and the longest lead. */
	WIDE_LONGEST = 8 * WIDE_GROUP + 7 * 64,
	/* Prefetch distance in bytes. */
	WIDE_AHEAD = 2048,
};

#define WIDE_NEEDS                                                                                                     \
	(CPU_AVX512F | CPU_AVX512BW | CPU_AVX512VL | CPU_AVX512DQ | CPU_AVX512VBMI | CPU_VPCLMULQDQ | CPU_PCLMUL |     \
	 CPU_SSE4_1)

WIDE_INLINE __m512i wide_add(__m512i a, __m512i b, __m512i c)
{
	return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

WIDE_INLINE __m512i wide_multipliers(const struct guard_multipliers *pair)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)pair));
}

/* Returns sum + value * by. */
WIDE_INLINE __m512i wide_fold(__m512i sum, __m512i value, __m512i by)
{
	return wide_add(sum, _mm512_clmulepi64_epi128(value, by, 0x00), _mm512_clmulepi64_epi128(value, by, 0x11));
}

/* Converts between memory order and the register order of guard_fold.h. */
WIDE_INLINE __m512i wide_order(enum guard_type type, __m512i value)
{
	const __m128i opposite = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	return guard_is_reflected(type) ? value : _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(opposite));
}

WIDE_INLINE __m512i wide_copy(const uint8_t *from, uint8_t *to, bool copy)
{
	__m512i value = _mm512_loadu_si512(from);

	if (copy)
		_mm512_storeu_si512(to, value);
	return value;
}

/* How each block is divided. */
struct wide_layout {
	size_t cut;    /* missing bytes of the first vector */
	size_t lead;   /* vectors before the groups, 0 to 7 */
	size_t groups; /* 0 only if there is a lead */
	__m512i shift; /* permutation that shifts by the cut */
	__m512i begin; /* initial running value, to be added to the first bytes of a block */
};

/* @bytes: at least 8. @bytes % 64 must not be 1 to 7, because the running value must fit into the first vector. */
WIDE_INLINE struct wide_layout wide_layout(enum guard_type type, uint64_t begin, size_t bytes)
{
	size_t cut = -bytes % 64, vectors = (bytes + cut) / 64;
	uint64_t value = guard_is_reflected(type) ? begin : __builtin_bswap64(begin);
	__m512i places =
		_mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
				 0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
	__m512i shift = _mm512_sub_epi8(places, _mm512_set1_epi8(cut));

	return (struct wide_layout){
		.cut = cut,
		.lead = vectors % 8,
		.groups = vectors / 8,
		.shift = shift,
		.begin = _mm512_maskz_permutexvar_epi8(0xffull << cut, shift, _mm512_set1_epi64(value)),
	};
}

/*
 * Loads and copies the first vector, padded with leading zeros. Of blocks of at least 64 bytes, it always loads and
 * stores 64.
 */
WIDE_INLINE __m512i wide_copy_first(const uint8_t *from, uint8_t *to, const struct wide_layout *layout, bool copy)
{
	__mmask64 mask = layout->lead + layout->groups > 1 ? ~0ull : ~0ull >> layout->cut;
	__m512i value;

	if (!layout->cut)
		return wide_copy(from, to, copy);
	value = _mm512_maskz_loadu_epi8(mask, from);
	if (copy)
		_mm512_mask_storeu_epi8(to, mask, value);
	/* Not VPEXPANDB, which on some CPUs takes as long as a whole group. */
	return _mm512_maskz_permutexvar_epi8(~0ull << layout->cut, layout->shift, value);
}

/* Folds @value over the next @count vectors, which are copied unless @to is NULL. */
WIDE __attribute__((noinline)) static __m512i wide_lead(enum guard_type type, __m512i value, const uint8_t *from,
							uint8_t *to, size_t count)
{
	const __m512i by = wide_multipliers(&guard_folds[type].by_64_bytes);

	value = wide_order(type, value);
	for (size_t i = 0; i < count; i++) {
		value = wide_fold(wide_order(type, wide_copy(from, to, to)), value, by);
		from += 64;
		to = to ? to + 64 : NULL;
	}
	return wide_order(type, value);
}

/* Adds neighbouring pieces of 16 bytes; wide_add_halves() does so with pairs of pieces. */
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

/* Returns in each piece of 16 bytes the sum of the four pieces of one argument. */
WIDE_INLINE __m512i wide_pieces(__m512i a, __m512i b, __m512i c, __m512i d)
{
	return wide_add_halves(wide_add_neighbours(a, b), wide_add_neighbours(c, d));
}

/* Returns the remainders of four pieces of 16 bytes. */
WIDE_INLINE __m256i wide_divide(enum guard_type type, __m512i value)
{
	const struct guard_fold *fold = &guard_folds[type];
	__m512i by = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)&fold->quotient));
	__m512i times, places;

	if (guard_is_reflected(type)) {
		times = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(value, by, 0x00));
		value = wide_add(value, _mm512_clmulepi64_epi128(times, by, 0x10),
				 _mm512_and_si512(_mm512_bslli_epi128(times, 8),
						  _mm512_set1_epi64(fold->divisor_last)));
		places = _mm512_set_epi64(0, 0, 0, 0, 7, 5, 3, 1);
	} else {
		times = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(value, by, 0x01));
		value = _mm512_xor_si512(value, _mm512_clmulepi64_epi128(times, by, 0x11));
		places = _mm512_set_epi64(0, 0, 0, 0, 6, 4, 2, 0);
	}
	return _mm512_castsi512_si256(_mm512_permutexvar_epi64(places, value));
}

WIDE_INLINE __m256i wide_finish(enum guard_type type, __m256i running)
{
	const __m256i swap32 =
		_mm256_set_epi64x(0xffffffff08090a0b, 0xffffffff00010203, 0xffffffff08090a0b, 0xffffffff00010203);
	const __m256i swap64 =
		_mm256_set_epi64x(0x08090a0b0c0d0e0f, 0x0001020304050607, 0x08090a0b0c0d0e0f, 0x0001020304050607);
	__m256i inverted = _mm256_xor_si256(running, _mm256_set1_epi64x(-1));

	switch (type) {
	case GUARD_T10_CRC:
		return _mm256_srli_epi64(running, 48);
	case GUARD_CRC32:
		return _mm256_srli_epi64(inverted, 32);
	case GUARD_CRC32C:
		return _mm256_shuffle_epi8(inverted, swap32);
	default:
		return _mm256_shuffle_epi8(inverted, swap64);
	}
}

/* Returns the running value for which guard_finish() returns @guard. */
static inline uint64_t wide_running(enum guard_type type, uint64_t guard)
{
	switch (type) {
	case GUARD_T10_CRC:
		return guard << 48;
	case GUARD_CRC32:
		return ~guard << 32;
	case GUARD_CRC32C:
		return __builtin_bswap32(~(uint32_t)guard);
	default:
		return __builtin_bswap64(~guard);
	}
}

WIDE_INLINE void wide_store(enum guard_type type, __m512i a, __m512i b, __m512i c, __m512i d, size_t count,
			    uint64_t *guards)
{
	__m256i values = wide_finish(type, wide_divide(type, wide_pieces(a, b, c, d)));

	/* A masked store would be slower: a load of its data soon after would wait for it and all stores before. */
	if (count == 4) {
		_mm256_storeu_si256((__m256i *)guards, values);
		return;
	}
	guards[0] = (uint64_t)_mm256_extract_epi64(values, 0);
	if (count > 1)
		guards[1] = (uint64_t)_mm256_extract_epi64(values, 1);
	if (count > 2)
		guards[2] = (uint64_t)_mm256_extract_epi64(values, 2);
}

/*
 * The inner loop: returns the sum of at least one group. @first: the first vector, copied already. @single: compile-time
 * constant, one group. @far: as in struct guard_blocks.
 */
typedef __m512i wide_sum(enum guard_type type, const uint8_t *from, uint8_t *to, size_t groups, __m512i first,
			 bool copy, bool single, bool far);

/*
 * @type, @copy and @single are compile-time constants. Uses only local variables, as a load that depends on an earlier
 * store, or seems to, delays all that follow.
 */
WIDE_INLINE void wide_copy_blocks(wide_sum *sum, enum guard_type type, bool copy, bool single,
				  const struct wide_layout *shared_layout, const struct guard_blocks *blocks,
				  size_t count, uint64_t *guards)
{
	const struct wide_layout layout = *shared_layout;
	const struct guard_fold *fold = &guard_folds[type];
	const size_t from_stride = blocks->from_stride, to_stride = copy ? blocks->to_stride : from_stride;
	/* Offset of the groups; negative if their first vector, which sum() does not load, is cut. */
	const ptrdiff_t lead = 64 * (ptrdiff_t)layout.lead - (ptrdiff_t)layout.cut;
	const uint8_t *from = blocks->from;
	const bool far = blocks->far;
	/* Not written without copying. */
	uint8_t *to = copy ? blocks->to : (uint8_t *)blocks->from;
	__m512i a, b, c, d = _mm512_setzero_si512();

	b = c = d;
#pragma GCC unroll 1
	for (size_t i = 0; i < count; i++) {
		__m512i next = _mm512_xor_si512(wide_copy_first(from, to, &layout, copy), layout.begin);

		if (layout.lead > 1)
			next = wide_lead(type, next, from + 64 - layout.cut, copy ? to + 64 - layout.cut : NULL,
					 layout.lead - 1);
		if (!single && !layout.groups) {
			next = wide_fold(_mm512_setzero_si512(), wide_order(type, next),
					 _mm512_loadu_si512(&fold->last[28]));
		} else {
			if (layout.lead) {
				next = wide_fold(_mm512_setzero_si512(), wide_order(type, next),
						 wide_multipliers(&fold->by_64_bytes));
				next = _mm512_xor_si512(wide_order(type, next),
							wide_copy(from + lead, to + lead, copy));
			}
			next = sum(type, from + lead, to + lead, single ? 1 : layout.groups, next, copy, single, far);
		}
		a = b;
		b = c;
		c = d;
		d = next;
		if (i % 4 == 3)
			wide_store(type, a, b, c, d, 4, guards + i - 3);
		from += from_stride;
		to += to_stride;
	}
	if (count % 4 == 1)
		wide_store(type, d, d, d, d, 1, guards + count - 1);
	else if (count % 4 == 2)
		wide_store(type, c, d, d, d, 2, guards + count - 2);
	else if (count % 4 == 3)
		wide_store(type, b, c, d, d, 3, guards + count - 3);
}

typedef void wide_instance(const struct wide_layout *layout, const struct guard_blocks *blocks, size_t count,
			   uint64_t *guards);

/* A single function would run out of registers. */
#define WIDE_INSTANCE(name, features, sum, type, copy, single)                                                         \
	__attribute__((noinline, target(features))) static void name(                                                  \
		const struct wide_layout *layout, const struct guard_blocks *blocks, size_t count, uint64_t *guards)   \
	{                                                                                                              \
		wide_copy_blocks(sum, type, copy, single, layout, blocks, count, guards);                              \
	}

#define WIDE_INSTANCES(name, features, sum, type)                                                                      \
	WIDE_INSTANCE(name##_update, features, sum, type, false, false)                                                \
	WIDE_INSTANCE(name##_update_single, features, sum, type, false, true)                                          \
	WIDE_INSTANCE(name##_copy, features, sum, type, true, false)                                                   \
	WIDE_INSTANCE(name##_copy_single, features, sum, type, true, true)                                             \
	static wide_instance *const name[2][2] = {                                                                     \
		{name##_update, name##_update_single},                                                                 \
		{name##_copy, name##_copy_single},                                                                     \
	};

/* Implements copy_blocks() of guard_kernels.h. */
WIDE_INLINE void wide_dispatch(wide_instance *const instances[2][2], enum guard_type type, uint64_t begin,
			       const struct guard_blocks *blocks, size_t count, uint64_t *guards)
{
	const struct wide_layout layout = wide_layout(type, begin, blocks->block);

	instances[blocks->to != NULL][layout.groups == 1](&layout, blocks, count, guards);
}

typedef void wide_kernel(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			 uint64_t *guards);

static inline bool wide_takes(size_t bytes)
{
	return bytes && bytes <= WIDE_LONGEST && (bytes % 64 == 0 || bytes % 64 >= 8);
}

/* Implements copy() of guard_kernels.h: up to 7 bytes by tables, the rest as blocks that the kernel takes. */
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
			running = wide_running(type, running);
		}
		from += now;
		to = to ? to + now : NULL;
		bytes -= now;
	}
	return running;
}

#endif
