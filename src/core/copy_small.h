/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying what is small as a rule: into work requests, and into slots that another process reads. */
#ifndef SOFTHCA_CORE_COPY_SMALL_H
#define SOFTHCA_CORE_COPY_SMALL_H

#include <stdint.h>
#include <string.h>

#include "core/compiler.h"
#include "core/tunables.h"

/**
 * Copies @length bytes from @from to @to, which do not overlap; any alignment. Up to TUNABLE_COPY_WORDS_BYTES word by word, which
 * into a work request or a slot takes less time than the vectors of memcpy(3), and needs no call. Any thread.
 */
static inline void copy_small(uint8_t *to, const uint8_t *from, uint32_t length)
{
	typedef uint64_t word __attribute__((aligned(1), may_alias));
	uint32_t at = 0;

	if (unlikely(length < sizeof(word) || length > TUNABLE_COPY_WORDS_BYTES)) {
		memcpy(to, from, length);
		return;
	}
	/* Volatile, as compilers make vectors, or a call, of a loop that copies. */
	for (; length - at > sizeof(word); at += (uint32_t)sizeof(word))
		/* The analyzer does not see a word where two fields are stored. */
		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
		*(volatile word *)(to + at) = *(const word *)(from + at);
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): as above. */
	*(volatile word *)(to + length - sizeof(word)) = *(const word *)(from + length - sizeof(word));
}

#endif
