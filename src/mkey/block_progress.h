/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a reception stopped inside a block: what has to be known of the bytes that came before, to go on with the next
 * packet or the next transfer. A queue pair keeps the one of its message under way; a key keeps the latest of all, as
 * its PSVs do in an adapter (mlx5-formats 6, point 11).
 *
 * The one of a queue pair is covered by its lock, the one of a key by the key's lock.
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
	uint64_t serial;  /* of the key */
	uint64_t version; /* of its configuration */
	uint64_t wire;    /* the position reached */
	uint64_t raw;
	uint64_t input_guard, output_guard, field;
};

/* The one of a queue pair: no message through a key with blocks has to have come, so what is large is made at first need. */
struct block_progress {
	bool valid;
	struct block_reached *reached; /* NULL: there never was one; owned */
	uint8_t *unit; /* BLOCK_LARGEST bytes that hold those of an incomplete data unit, or NULL; owned */
};

/** Frees what @progress owns. */
void block_progress_release(struct block_progress *progress);

#endif
