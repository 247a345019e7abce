/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs by carry-less multiplication (PCLMULQDQ): four registers, each folded over the next 64 bytes. */
#include "block/guard_fold.h"
#include "core/compiler.h"

#ifdef __x86_64__
#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define CLMUL_INLINE CLMUL static inline SPECIALISED

CLMUL_INLINE __m128i clmul_load_multipliers(const struct guard_multipliers *pair)
{
	return _mm_loadu_si128((const __m128i *)pair);
}

/* Returns sum + value * by. */
CLMUL_INLINE __m128i clmul_fold(__m128i sum, __m128i value, __m128i by)
{
	sum = _mm_xor_si128(sum, _mm_clmulepi64_si128(value, by, 0x00));
	return _mm_xor_si128(sum, _mm_clmulepi64_si128(value, by, 0x11));
}

/* Converts from memory order to the register order of guard_fold.h. */
CLMUL_INLINE __m128i clmul_order(enum guard_type type, __m128i value)
{
	const __m128i opposite = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	return guard_is_reflected(type) ? value : _mm_shuffle_epi8(value, opposite);
}

CLMUL_INLINE __m128i clmul_copy_part(enum guard_type type, uint8_t *to, const uint8_t *from, bool copy)
{
	__m128i value = _mm_loadu_si128((const __m128i *)from);

	if (copy)
		_mm_storeu_si128((__m128i *)to, value);
	return clmul_order(type, value);
}

CLMUL_INLINE uint64_t clmul_divide(enum guard_type type, __m128i value)
{
	const struct guard_fold *constants = &guard_folds[type];
	__m128i by = _mm_loadu_si128((const __m128i *)&constants->quotient), times;

	if (guard_is_reflected(type)) {
		times = _mm_xor_si128(value, _mm_clmulepi64_si128(value, by, 0x00));
		value = _mm_xor_si128(value, _mm_clmulepi64_si128(times, by, 0x10));
		return (uint64_t)_mm_extract_epi64(value, 1) ^
		       ((uint64_t)_mm_cvtsi128_si64(times) & constants->divisor_last);
	}
	times = _mm_xor_si128(value, _mm_clmulepi64_si128(value, by, 0x01));
	value = _mm_xor_si128(value, _mm_clmulepi64_si128(times, by, 0x11));
	return (uint64_t)_mm_cvtsi128_si64(value);
}

/* @bytes: a positive multiple of 64. */
CLMUL_INLINE uint64_t clmul_fold_all(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				     size_t bytes, bool copy)
{
	const struct guard_fold *constants = &guard_folds[type];
	const __m128i by = clmul_load_multipliers(&constants->by_64_bytes);
	__m128i begin = _mm_cvtsi64_si128((long long)running), value[4], sum = _mm_setzero_si128();

	if (!guard_is_reflected(type))
		begin = _mm_slli_si128(begin, 8);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		value[i] = clmul_copy_part(type, to + 16 * i, from + 16 * i, copy);
	value[0] = _mm_xor_si128(value[0], begin);
	for (size_t done = 64; done < bytes; done += 64) {
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++)
			value[i] = clmul_fold(clmul_copy_part(type, to + done + 16 * i, from + done + 16 * i, copy),
					      value[i], by);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		sum = clmul_fold(sum, value[i], clmul_load_multipliers(&constants->last[28 + i]));
	return clmul_divide(type, sum);
}

CLMUL_INLINE uint64_t clmul_fold_type(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				      size_t bytes)
{
	if (to)
		return clmul_fold_all(type, running, to, from, bytes, true);
	/* Nothing is written to the source. */
	return clmul_fold_all(type, running, (uint8_t *)from, from, bytes, false);
}

CLMUL static uint64_t clmul_fold_any(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from,
				     size_t bytes)
{
	switch (type) {
	case GUARD_T10_CRC:
		return clmul_fold_type(GUARD_T10_CRC, running, to, from, bytes);
	case GUARD_CRC32:
		return clmul_fold_type(GUARD_CRC32, running, to, from, bytes);
	case GUARD_CRC32C:
		return clmul_fold_type(GUARD_CRC32C, running, to, from, bytes);
	default:
		return clmul_fold_type(GUARD_CRC64_XP10, running, to, from, bytes);
	}
}

static uint64_t clmul_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t whole = bytes & ~(size_t)63;

	if (whole)
		running = clmul_fold_any(type, running, to, from, whole);
	if (whole < bytes)
		running = guard_kernel_table.copy(type, running, to ? to + whole : NULL, from + whole, bytes - whole);
	return running;
}

const struct guard_kernel guard_kernel_pclmulqdq = {
	.name = "pclmulqdq",
	.needs = CPU_PCLMUL | CPU_SSE4_1,
	.prepare = guard_fold_prepare,
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C | 1u << GUARD_CRC64_XP10,
	.copy = clmul_copy,
};
#endif
