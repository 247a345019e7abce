/* SPDX-License-Identifier: BSD-2-Clause */
/* See ring.h. */
#include <string.h>

#include "link/shm/ring.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <immintrin.h>

/* Copies whole blocks. Returns the number of bytes copied. */
static __attribute__((target("avx"))) uint32_t lines_write_blocks(uint8_t *to, const uint8_t *from, uint32_t length)
{
	enum { WORDS = 8, BLOCK = WORDS * sizeof(__m256i) };
	uint32_t copied = 0;

	for (; length - copied >= BLOCK; copied += BLOCK) {
		__m256i word[WORDS];

		for (int i = 0; i < WORDS; i++)
			word[i] = _mm256_loadu_si256((const __m256i *)(from + copied) + i);
		for (int i = 0; i < WORDS; i++)
			_mm256_stream_si256((__m256i *)(to + copied) + i, word[i]);
	}
	/* Orders these stores before later ones, such as the sequence of the slot. */
	_mm_sfence();
	return copied;
}

void shm_write_lines(uint8_t *to, const uint8_t *from, uint32_t length)
{
	uint32_t copied = __builtin_cpu_supports("avx") ? lines_write_blocks(to, from, length) : 0;

	memcpy(to + copied, from + copied, length - copied);
}
#else
void shm_write_lines(uint8_t *to, const uint8_t *from, uint32_t length)
{
	memcpy(to, from, length);
}
#endif
