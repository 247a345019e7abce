/* SPDX-License-Identifier: BSD-2-Clause */
/* The Internet checksum, 32 bytes at a time. Sums of 32-bit halves in 64-bit lanes lose no carries. */
#include "block/guard_checksum.h"
#include "core/compiler.h"

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE AVX2 static inline SPECIALISED

AVX2_INLINE __m256i avx2_add_halves(__m256i sum, __m256i value)
{
	__m256i low = _mm256_and_si256(value, _mm256_set1_epi64x(0xffffffff));

	return _mm256_add_epi64(_mm256_add_epi64(sum, low), _mm256_srli_epi64(value, 32));
}

AVX2_INLINE __m256i avx2_copy_part(uint8_t *to, const uint8_t *from, bool copy)
{
	__m256i value = _mm256_loadu_si256((const __m256i *)from);

	if (copy)
		_mm256_storeu_si256((__m256i *)to, value);
	return value;
}

/* Sums 64 bytes per step, the rest by guard_checksum_words(). */
AVX2_INLINE uint64_t avx2_sum_bytes(uint8_t *to, const uint8_t *from, size_t bytes, bool copy)
{
	__m256i even = _mm256_setzero_si256(), odd = even;
	uint64_t sums[4];
	size_t i = 0;

	for (; bytes - i >= 64; i += 64) {
		even = avx2_add_halves(even, avx2_copy_part(to + i, from + i, copy));
		odd = avx2_add_halves(odd, avx2_copy_part(to + i + 32, from + i + 32, copy));
	}
	_mm256_storeu_si256((__m256i *)sums, _mm256_add_epi64(even, odd));
	return sums[0] + sums[1] + sums[2] + sums[3] + guard_checksum_words(copy ? to + i : NULL, from + i, bytes - i);
}

AVX2 static uint64_t avx2_sum_pairs(uint8_t *to, const uint8_t *from, size_t bytes)
{
	/* Nothing is written to the source. */
	return to ? avx2_sum_bytes(to, from, bytes, true) : avx2_sum_bytes((uint8_t *)from, from, bytes, false);
}

static uint64_t avx2_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	(void)type;
	return guard_checksum_copy(avx2_sum_pairs, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_avx2 = {
	.name = "avx2",
	.needs = CPU_AVX2,
	.types = 1u << GUARD_IP_CHECKSUM,
	.copy = avx2_copy,
};
#endif
