/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State of a reception that stopped inside a block, where the next packet or transfer continues (DESIGN.md; mlx5-formats
 * 6, point 11). Locks: the queue pair's and the key's.
 */
#ifndef SOFTHCA_MKEY_BLOCK_PROGRESS_H
#define SOFTHCA_MKEY_BLOCK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct block_reached {
	bool in_field, field_torn;
	bool input_whole, output_whole;
	uint32_t field_at;
	uint32_t held;    /* bytes of an incomplete data unit */
	uint64_t serial;  /* serial of the key */
	uint64_t version; /* version of its configuration */
	uint64_t wire;    /* position reached */
	uint64_t raw;
	uint64_t input_guard, output_guard, field;
};

/* The members are allocated at first use, as most QPs never use keys with blocks. */
struct block_progress {
	bool valid;
	struct block_reached *reached; /* NULL until first used; owned */
	uint8_t *unit; /* BLOCK_LARGEST bytes for an incomplete data unit; NULL until first used; owned */
};

void block_progress_release(struct block_progress *progress);

#endif
