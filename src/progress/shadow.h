/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring in memory that the program may unmap (progress/program_memory.h): the device fetches what a doorbell record announces
 * into a copy of its own, as an adapter does, and works on the copy. So nothing that executes a ring has to care.
 *
 * Owner: the queue, which frees it. Its lock covers all calls.
 */
#ifndef SOFTHCA_PROGRESS_SHADOW_H
#define SOFTHCA_PROGRESS_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

struct shadow {
	const uint8_t *ring;    /* the program's */
	const uint32_t *record; /* its doorbell record, big-endian, 16 bits */
	uint32_t count;         /* of entries; a power of two, at most 2^15 */
	uint32_t shift;         /* log2 of their bytes */
	uint16_t fetched;       /* running count of the entries in the copy */
	uint16_t next;          /* of a linked ring: the entry to be fetched next */
	bool linked; /* entries name their successor in their bytes 2 and 3 (mlx5-formats 2.2); else they lie in order */
	bool gone;   /* the memory is */
	uint32_t index; /* what a doorbell record of the copy says, big-endian */
	uint8_t *copy;
};

/** Fills @shadow for a ring of @count entries of 2^@shift bytes; what stands in @ring before the first ring is not looked at. */
int shadow_init(struct shadow *shadow, const void *ring, const uint32_t *record, uint32_t count, uint32_t shift);
void shadow_free(struct shadow *shadow);

/**
 * Fetches the entries that the record announces beyond those that were. Returns true if there are any. Once the memory has gone
 * there are none, and @shadow->gone is set.
 */
bool shadow_fetch(struct shadow *shadow);

/** The queue begins anew, at entry 0, and its record with 0. */
void shadow_reset(struct shadow *shadow);

#endif
