/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks that block signatures carry: CRCs and the Internet checksum (mlx5-formats 5.1), computed in the pass that
 * copies the data, by the best kernel that the CPU has.
 *
 * A guard is begun with its seed, updated with the bytes of one block in any cuts, and stored as the bytes that a
 * signature has in memory. The running value is opaque and small, so that it can be kept between packets.
 *
 * The kernels are chosen once, by CPU features (guard_kernels); all of them give the same values. Nothing here
 * allocates, locks or fails; any thread may call.
 */
#ifndef SOFTHCA_BLOCK_GUARD_H
#define SOFTHCA_BLOCK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/key_kinds.h"

/** Bytes that a stored guard has: 2, 4 or 8. 0 for GUARD_NONE. */
unsigned int guard_size(enum guard_type type);

/** The running value before the first byte. @ones: the seed is all ones, else 0. */
uint64_t guard_begin(enum guard_type type, bool ones);

/** The running value after @bytes more of @data, which may be of any length and alignment. */
uint64_t guard_update(enum guard_type type, uint64_t running, const void *data, size_t bytes);

/** The same, copying @data to @to in the same pass. The ranges do not overlap. */
uint64_t guard_copy(enum guard_type type, uint64_t running, void *to, const void *data, size_t bytes);

/**
 * The finished guard as a number whose bytes, most significant first, are the bytes in memory: guard_size() of them, in
 * the low bits. So the first byte in memory is the most significant one, whatever the type (mlx5-formats 6, point 14).
 */
uint64_t guard_finish(enum guard_type type, uint64_t running);

/* Whole blocks at even distances, the usual case: data of block i at from + i * from_stride. */
struct guard_blocks {
	const uint8_t *from;
	uint8_t *to; /* or NULL: nothing is copied */
	size_t from_stride, to_stride;
	size_t block; /* bytes of a block: 512, 520, 4048, 4096 or 4160 */
	/* The data is expected in memory rather than in a cache, as when a transfer is larger than that. Only for speed. */
	bool far;
};

/**
 * Copies the data of @count blocks (not what lies between them) and gives the finished guard of each in @guards. Source
 * and target do not overlap. Stores go up in address within a block and from block to block.
 */
void guard_copy_blocks(enum guard_type type, bool ones, const struct guard_blocks *blocks, size_t count,
		       uint64_t *guards);

/** Which kernel serves @type on this CPU: "gfni", "vpclmulqdq", "pclmulqdq", "table", … */
const char *guard_kernel_name(enum guard_type type);

#endif
