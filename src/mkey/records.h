/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies many repetitions or list entries at a time, without a look-up per piece. */
#ifndef SOFTHCA_MKEY_RECORDS_H
#define SOFTHCA_MKEY_RECORDS_H

#include "mkey/walk.h"

/**
 * Returns how many whole repetitions come next: 0 unless all entries are direct memory and a repetition begins here.
 */
uint64_t walk_repetitions(const struct walk *walk);

static inline uint64_t walk_period(const struct walk *walk)
{
	return walk->level[0].map->period;
}

/**
 * Copies the next @count repetitions, at most walk_repetitions(), to @memory. @last: they end a message, so their last
 * bytes are stored last (copy_bytes_last()).
 */
void records_gather(struct walk *walk, uint8_t *memory, uint64_t count, bool last);
/** As records_gather(), from @memory into the layout. */
void records_scatter(struct walk *walk, const uint8_t *memory, uint64_t count, bool last);

/** Copies the next @bytes of a list in one region (walk.region) to @memory. @last as above. */
void list_gather(struct walk *walk, uint8_t *memory, uint64_t bytes, bool last);
/** As list_gather(), from @memory into the list. */
void list_scatter(struct walk *walk, const uint8_t *memory, uint64_t bytes, bool last);

/* Copies @count records of @bytes with constant strides. Each is read whole before it is written. */
typedef void record_copy(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t bytes,
			 uint64_t count);

struct record_kernel {
	const char *name;
	bool (*supported)(void);
	record_copy *copy;
};

/** The fastest first; the last one works on every CPU. An entry without a name ends the table. */
extern const struct record_kernel record_kernels[];

#endif
