/* SPDX-License-Identifier: BSD-2-Clause */
/* The Internet checksum (RFC 1071), on top of a kernel that sums pairs of bytes. */
#ifndef SOFTHCA_BLOCK_GUARD_CHECKSUM_H
#define SOFTHCA_BLOCK_GUARD_CHECKSUM_H

#include "block/guard_kernels.h"

#include <endian.h>

/** Folds @sum with end-around carries. The result is 0 only for 0. */
static inline uint64_t guard_checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/** Copies @bytes, an even number, unless @to is NULL. Returns the sum of their pairs in host order. */
typedef uint64_t guard_checksum_pairs(uint8_t *to, const uint8_t *from, size_t bytes);

/** Runs on every CPU. */
guard_checksum_pairs guard_checksum_words;

static inline uint64_t guard_checksum_copy(guard_checksum_pairs *pairs, uint64_t running, uint8_t *to,
					   const uint8_t *from, size_t bytes)
{
	uint64_t sum = running & 0xffff;
	size_t first = running & GUARD_CHECKSUM_ODD && bytes ? 1 : 0;
	size_t even = (bytes - first) & ~(size_t)1;
	bool odd = running & GUARD_CHECKSUM_ODD && !first;

	if (first) {
		sum += from[0];
		if (to)
			to[0] = from[0];
	}
	/* RFC 1071 2(B): swapping the bytes of all pairs swaps the bytes of the sum. */
	sum += be16toh((uint16_t)guard_checksum_fold(pairs(to ? to + first : NULL, from + first, even)));
	if (first + even < bytes) {
		sum += (unsigned int)from[bytes - 1] << 8;
		if (to)
			to[bytes - 1] = from[bytes - 1];
		odd = true;
	}
	return guard_checksum_fold(sum) | (odd ? GUARD_CHECKSUM_ODD : 0);
}

#endif
