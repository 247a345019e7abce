/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy of a ring in memory that the program may unmap (progress/program_memory.h). The device fetches the entries
 * that a doorbell record announces into its own copy, as an adapter does, and works on the copy, so code that executes
 * a ring need not handle unmapped memory.
 *
 * Owner: the queue, which frees it. Its lock covers all calls.
 */
#ifndef SOFTHCA_PROGRESS_SHADOW_H
#define SOFTHCA_PROGRESS_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

struct shadow {
	const uint8_t *ring;    /* the program's */
	const uint32_t *record; /* the ring's doorbell record, big-endian, 16 bits */
	uint32_t count;         /* number of entries; a power of two, at most 2^15 */
	uint32_t shift;         /* log2 of the bytes of an entry */
	uint16_t fetched;       /* running count of the entries in the copy */
	uint16_t next;          /* for a linked ring: next entry to fetch */
	bool linked;    /* entries name their successor in their bytes 2 and 3 (mlx5-formats 2.2); otherwise they are in
		      * order */
	bool gone;      /* the memory was unmapped */
	uint32_t index; /* doorbell record of the copy, big-endian */
	uint8_t *copy;
};

/**
 * Fills @shadow for a ring of @count entries of 2^@shift bytes; entries present before the first doorbell are ignored.
 */
int shadow_init(struct shadow *shadow, const void *ring, const uint32_t *record, uint32_t count, uint32_t shift);
void shadow_free(struct shadow *shadow);

/**
 * Fetches the entries that the record announces and that were not fetched yet. Returns true if there are any. If the
 * memory was unmapped, returns false and sets @shadow->gone.
 */
bool shadow_fetch(struct shadow *shadow);

/** Restarts the queue at entry 0, with a record of 0. */
void shadow_reset(struct shadow *shadow);

#endif
