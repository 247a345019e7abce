/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy of a ring in memory that the program may unmap (program_memory.h). The device copies the entries that a
 * doorbell record announces, as an adapter does, so code that executes a ring need not handle unmapped memory. Owner:
 * the queue, which frees it. Its lock covers all calls.
 */
#ifndef SOFTHCA_PROGRESS_SHADOW_H
#define SOFTHCA_PROGRESS_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

struct shadow {
	const uint8_t *ring;    /* ring of the program */
	const uint32_t *record; /* its doorbell record, big-endian, 16 bits */
	uint32_t count;         /* entries; a power of two, at most 2^15 */
	uint32_t shift;         /* log2 of the bytes of an entry */
	uint16_t fetched;       /* running count of entries in the copy */
	uint16_t next;          /* next entry of a linked ring to fetch */
	bool linked;            /* entries name their successor in bytes 2 and 3 (mlx5-formats 2.2) */
	bool gone;              /* the memory was unmapped */
	uint32_t index;         /* doorbell record of the copy, big-endian */
	uint8_t *copy;
};

/** @count entries of 2^@shift bytes; those present before the first doorbell are ignored. Returns 0 or -ENOMEM. */
int shadow_init(struct shadow *shadow, const void *ring, const uint32_t *record, uint32_t count, uint32_t shift);
void shadow_free(struct shadow *shadow);

/**
 * Fetches the entries that the record announces and that were not fetched yet. Returns true if there are any. Sets
 * @shadow->gone if the memory was unmapped.
 */
bool shadow_fetch(struct shadow *shadow);

/** Restarts the queue at entry 0, with a record of 0. */
void shadow_reset(struct shadow *shadow);

#endif
