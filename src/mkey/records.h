/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying records between a repeated layout and contiguous memory, many repetitions at a time: what makes an
 * interleaved key cost little more than the copies themselves.
 */
#ifndef SOFTHCA_MKEY_RECORDS_H
#define SOFTHCA_MKEY_RECORDS_H

#include "mkey/walk.h"

/**
 * Repetitions that the walk can hand out whole from where it is: 0 unless all its entries are direct memory and it is at
 * the start of a repetition.
 */
uint64_t walk_repetitions(const struct walk *walk);

/** Bytes of one of them. */
static inline uint64_t walk_period(const struct walk *walk)
{
	return walk->level[0].map->period;
}

/** Copies @count <= walk_repetitions() repetitions to @memory, and moves the walk behind them. */
void records_gather(struct walk *walk, uint8_t *memory, uint64_t count);
/** The same from @memory into the layout. */
void records_scatter(struct walk *walk, const uint8_t *memory, uint64_t count);

#endif
