/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum, 64 bytes at a time, as in guard_checksum_avx2.c, with pairs of bytes in host order. Folding and
 * byte swapping come last, for four blocks at once.
 */
#include "block/guard_checksum.h"
#include "core/compiler.h"

#ifdef __x86_64__
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq")))
#define AVX512_INLINE AVX512 static inline SPECIALISED

AVX512_INLINE __m512i avx512_add_halves(__m512i sum, __m512i value)
{
	__m512i low = _mm512_and_si512(value, _mm512_set1_epi64(0xffffffff));

	return _mm512_add_epi64(_mm512_add_epi64(sum, low), _mm512_srli_epi64(value, 32));
}

/* Returns eight partial sums. */
AVX512_INLINE __m512i avx512_sum_bytes(uint8_t *to, const uint8_t *from, size_t bytes, bool copy)
{
	__m512i even = _mm512_setzero_si512(), odd = even, value;
	__mmask64 mask;
	size_t i = 0;

	for (; bytes - i >= 128; i += 128) {
		value = _mm512_loadu_si512(from + i);
		if (copy)
			_mm512_storeu_si512(to + i, value);
		even = avx512_add_halves(even, value);
		value = _mm512_loadu_si512(from + i + 64);
		if (copy)
			_mm512_storeu_si512(to + i + 64, value);
		odd = avx512_add_halves(odd, value);
	}
	for (; i < bytes; i += 64) {
		mask = bytes - i < 64 ? ~(~0ull << (bytes - i)) : ~0ull;
		value = _mm512_maskz_loadu_epi8(mask, from + i);
		if (copy)
			_mm512_mask_storeu_epi8(to + i, mask, value);
		even = avx512_add_halves(even, value);
	}
	return _mm512_add_epi64(even, odd);
}

AVX512 static uint64_t avx512_sum_pairs(uint8_t *to, const uint8_t *from, size_t bytes)
{
	return (uint64_t)_mm512_reduce_add_epi64(to ? avx512_sum_bytes(to, from, bytes, true)
						    : avx512_sum_bytes((uint8_t *)from, from, bytes, false));
}

static uint64_t avx512_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	(void)type;
	return guard_checksum_copy(avx512_sum_pairs, running, to, from, bytes);
}

/* Adds neighbouring 8-byte lanes, of @a to even lanes, of @b to odd ones. */
AVX512_INLINE __m512i avx512_add_pairs(__m512i a, __m512i b)
{
	return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

AVX512_INLINE __m512i avx512_fold_once(__m512i sum)
{
	return _mm512_add_epi64(_mm512_and_si512(sum, _mm512_set1_epi64(0xffff)), _mm512_srli_epi64(sum, 16));
}

/* Stores the guards of the first @count of four blocks. @begin is in host order. */
AVX512_INLINE void avx512_store_guards(__m512i a, __m512i b, __m512i c, __m512i d, uint64_t begin, size_t count,
				       uint64_t *guards)
{
	const __m256i swap =
		_mm256_set_epi64x(0xffffffffffff0809, 0xffffffffffff0001, 0xffffffffffff0809, 0xffffffffffff0001);
	__m512i ab = avx512_add_pairs(a, b), cd = avx512_add_pairs(c, d);
	__m512i sum = _mm512_add_epi64(_mm512_shuffle_i64x2(ab, cd, 0x88), _mm512_shuffle_i64x2(ab, cd, 0xdd));
	uint64_t values[4];
	__m256i folded;

	/* Pieces of 16 bytes: a and b, a and b, c and d, c and d. */
	sum = _mm512_add_epi64(sum, _mm512_shuffle_i64x2(sum, sum, 0xb1));
	sum = _mm512_add_epi64(avx512_add_halves(_mm512_setzero_si512(), sum), _mm512_set1_epi64((long long)begin));
	sum = avx512_fold_once(avx512_fold_once(avx512_fold_once(sum)));
	folded = _mm512_castsi512_si256(_mm512_shuffle_i64x2(sum, sum, 0x08));
	folded = _mm256_shuffle_epi8(_mm256_xor_si256(folded, _mm256_set1_epi64x(-1)), swap);
	if (count == 4) {
		_mm256_storeu_si256((__m256i *)guards, folded);
		return;
	}
	_mm256_storeu_si256((__m256i *)values, folded);
	for (size_t i = 0; i < count; i++)
		guards[i] = values[i];
}

AVX512_INLINE void avx512_copy_each(bool copy, uint64_t begin, const struct guard_blocks *shared_blocks, size_t count,
				    uint64_t *guards)
{
	const struct guard_blocks blocks = *shared_blocks;
	const size_t to_stride = copy ? blocks.to_stride : blocks.from_stride;
	const uint8_t *from = blocks.from;
	uint8_t *to = copy ? blocks.to : (uint8_t *)blocks.from;
	__m512i a, b, c, d = _mm512_setzero_si512();

	b = c = d;
	begin = htobe16((uint16_t)begin);
	for (size_t i = 0; i < count; i++) {
		a = b;
		b = c;
		c = d;
		d = avx512_sum_bytes(to, from, blocks.block, copy);
		if (i % 4 == 3)
			avx512_store_guards(a, b, c, d, begin, 4, guards + i - 3);
		from += blocks.from_stride;
		to += to_stride;
	}
	if (count % 4 == 1)
		avx512_store_guards(d, d, d, d, begin, 1, guards + count - 1);
	else if (count % 4 == 2)
		avx512_store_guards(c, d, d, d, begin, 2, guards + count - 2);
	else if (count % 4 == 3)
		avx512_store_guards(b, c, d, d, begin, 3, guards + count - 3);
}

AVX512 static void avx512_copy_blocks(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks,
				      size_t count, uint64_t *guards)
{
	(void)type;
	if (blocks->to)
		avx512_copy_each(true, begin, blocks, count, guards);
	else
		avx512_copy_each(false, begin, blocks, count, guards);
}

static bool avx512_takes_blocks(size_t bytes)
{
	return bytes % 2 == 0;
}

const struct guard_kernel guard_kernel_avx512 = {
	.name = "avx512",
	.needs = CPU_AVX512F | CPU_AVX512BW | CPU_AVX512DQ,
	.types = 1u << GUARD_IP_CHECKSUM,
	.takes = avx512_takes_blocks,
	.copy = avx512_copy,
	.copy_blocks = avx512_copy_blocks,
};
#endif
