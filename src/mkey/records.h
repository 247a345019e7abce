/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between a layout and contiguous memory without a look-up per piece: many repetitions of a repeated layout, or many
 * entries of a list at a time.
 */
#ifndef SOFTHCA_MKEY_RECORDS_H
#define SOFTHCA_MKEY_RECORDS_H

#include "mkey/walk.h"

/**
 * Returns the number of whole repetitions that the walk can hand out next: 0 unless all its entries are direct memory and it is
 * at the start of a repetition.
 */
uint64_t walk_repetitions(const struct walk *walk);

/** Returns the bytes of one repetition. */
static inline uint64_t walk_period(const struct walk *walk)
{
	return walk->level[0].map->period;
}

/**
 * Copies @count repetitions, at most walk_repetitions(), to @memory and advances the walk past them. @last: they end a message,
 * so the last bytes are stored last (copy_bytes_last()).
 */
void records_gather(struct walk *walk, uint8_t *memory, uint64_t count, bool last);
/** Copies from @memory into the layout, otherwise like records_gather(). */
void records_scatter(struct walk *walk, const uint8_t *memory, uint64_t count, bool last);

/**
 * Copies the next @bytes of the walk, a list in one region (walk.region), to @memory, and advances the walk past them.
 * @last as above.
 */
void list_gather(struct walk *walk, uint8_t *memory, uint64_t bytes, bool last);
/** As list_gather(), from @memory into the list. */
void list_scatter(struct walk *walk, const uint8_t *memory, uint64_t bytes, bool last);

/*
 * A function that copies @count records of @bytes with constant strides on both sides. Each record is read whole before it is
 * written.
 */
typedef void record_copy(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t bytes,
			 uint64_t count);

struct record_kernel {
	const char *name;
	bool (*supported)(void); /* by this CPU */
	record_copy *copy;
};

/** All kernels, the fastest first; the last one works on every CPU. An entry without a name ends the table. */
extern const struct record_kernel record_kernels[];

#endif
