/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guards of block signatures: CRCs and the Internet checksum (mlx5-formats 5.1), computed while the data is copied.
 *
 * A guard begins with its seed and is updated with the bytes of one block, in chunks of any size. The running value is
 * small enough to be kept between packets. guard_finish() makes it the number in a signature field. Functions do not
 * allocate or fail, and take no lock after the first call. Any thread.
 */
#ifndef SOFTHCA_BLOCK_GUARD_H
#define SOFTHCA_BLOCK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/key_kinds.h"

/** Returns the bytes of a stored guard: 2, 4 or 8; 0 for GUARD_NONE. */
unsigned int guard_size(enum guard_type type);

/** Returns the running value before the first byte. @ones: seed of all ones, otherwise 0. */
uint64_t guard_begin(enum guard_type type, bool ones);

/** Returns the running value after @bytes more, of any length and alignment. */
uint64_t guard_update(enum guard_type type, uint64_t running, const void *data, size_t bytes);

/** As guard_update(), and copies @data to @to. The ranges must not overlap. */
uint64_t guard_copy(enum guard_type type, uint64_t running, void *to, const void *data, size_t bytes);

/**
 * Returns the finished guard: guard_size() bytes, the most significant one first in memory (mlx5-formats 6, point 14).
 */
uint64_t guard_finish(enum guard_type type, uint64_t running);

/* Whole blocks: the data of block i is at from + i * from_stride. */
struct guard_blocks {
	const uint8_t *from;
	uint8_t *to; /* NULL: the data is not copied */
	size_t from_stride, to_stride;
	size_t block; /* bytes of a block: 512, 520, 4048, 4096 or 4160 */
	/* A hint: the transfer is larger than the caches, so the data is expected in memory. */
	bool far;
};

/**
 * Copies the data of @count blocks, not the bytes between them, and stores their finished guards. Source and target must
 * not overlap. Addresses of stores ascend within and between blocks.
 */
void guard_copy_blocks(enum guard_type type, bool ones, const struct guard_blocks *blocks, size_t count,
		       uint64_t *guards);

/** Returns the name of the kernel on this CPU: "gfni", "vpclmulqdq", "pclmulqdq", "table", … */
const char *guard_kernel_name(enum guard_type type);

#endif
