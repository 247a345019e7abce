/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of data that is usually small: into work requests and shared slots. */
#ifndef SOFTHCA_CORE_COPY_SMALL_H
#define SOFTHCA_CORE_COPY_SMALL_H

#include <stdint.h>
#include <string.h>

#include "core/compiler.h"
#include "core/tunables.h"

/**
 * Copies @length bytes between areas that do not overlap and may have any alignment; up to TUNABLE_COPY_WORDS_BYTES
 * word by word, which for work requests and slots is faster than memcpy(3) with vectors. Any thread may call.
 */
static inline void copy_small(uint8_t *to, const uint8_t *from, uint32_t length)
{
	typedef uint64_t word __attribute__((aligned(1), may_alias));
	uint32_t at = 0;

	if (unlikely(length < sizeof(word) || length > TUNABLE_COPY_WORDS_BYTES)) {
		memcpy(to, from, length);
		return;
	}
	/* Volatile, because compilers turn a copy loop into vector code or a call. */
	for (; length - at > sizeof(word); at += (uint32_t)sizeof(word))
		/* The analyzer does not recognize a word that covers two fields. */
		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
		*(volatile word *)(to + at) = *(const word *)(from + at);
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): as above. */
	*(volatile word *)(to + length - sizeof(word)) = *(const word *)(from + length - sizeof(word));
}

#endif
