/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of links and transport; counters.def is the table. Each device has its own. Code that counts something that is no
 * device's, such as a packet for a QP that does not exist, counts it for the first one, where its explanation is, too.
 *
 * Counting is an addition to memory of the calling thread (the counters hang on its epoch slot, which outlives it), so it
 * costs neither a locked instruction nor a cache line that others write. Reading adds all threads up.
 */
#ifndef SOFTHCA_OBSERVE_COUNTERS_H
#define SOFTHCA_OBSERVE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "core/epoch.h"
#include "hca/hca.h"

enum counter {
#define COUNTER(NAME, name, doc) COUNTER_##NAME,
#include "observe/counters.def"
	COUNTER_COUNT
};

struct counter_info {
	const char *name; /* "shm_runs_sent" */
	const char *doc;
};

/** Row of @counter (< COUNTER_COUNT); constant. */
const struct counter_info *counter_info(enum counter counter);

/** Gives this thread counters. NULL without memory: then nothing is counted. */
uint64_t *counters_attach(void);

/** Where the calling thread counts for @hca, by enum counter, or NULL: it cannot. Any thread, any lock. */
static inline uint64_t *counters_here(const struct hca *hca)
{
	struct epoch_slot *slot = epoch_this_thread;
	uint64_t *counters = slot ? slot->counters : NULL;

	if (__builtin_expect(!counters, 0) && !(counters = counters_attach()))
		return NULL;
	return counters + hca->index * COUNTER_COUNT;
}

/** Adds @n to @counter of @counters, of counters_here(), not NULL: for those that count several things. */
static inline void counters_add(uint64_t *counters, enum counter counter, uint64_t n)
{
	__atomic_store_n(counters + counter, counters[counter] + n, __ATOMIC_RELAXED);
}

/** Adds @n to @counter of @hca. Any thread, any lock. */
static inline void counter_add(const struct hca *hca, enum counter counter, uint64_t n)
{
	uint64_t *counters = counters_here(hca);

	if (__builtin_expect(counters != NULL, 1))
		counters_add(counters, counter, n);
}

/** What @hca has counted in this process so far. Any thread. */
uint64_t counter_read(const struct hca *hca, enum counter counter);

/** Begins anew at 0, in a forked child: what was counted is the parent's. */
void counters_after_fork(void);

#endif
