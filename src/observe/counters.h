/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of links and transport (counters.def), per device. Each thread counts in its own memory, and readers add up
 * (DESIGN.md). Events without a device, such as a packet for a QP that does not exist, are counted for the first one,
 * which also has their explanation.
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

/** Constant. */
const struct counter_info *counter_info(enum counter counter);

/** Allocates counters for this thread. Returns NULL without memory; then nothing is counted. */
uint64_t *counters_attach(void);

/**
 * Returns the calling thread's counters for @hca, by enum counter, or NULL without memory. Any thread may call, with
 * any lock held.
 */
static inline uint64_t *counters_here(const struct hca *hca)
{
	struct epoch_slot *slot = epoch_this_thread;
	uint64_t *counters = slot ? slot->counters : NULL;

	if (__builtin_expect(!counters, 0) && !(counters = counters_attach()))
		return NULL;
	return counters + hca->index * COUNTER_COUNT;
}

/** Adds to @counters, from counters_here() and not NULL, for callers that count several events. */
static inline void counters_add(uint64_t *counters, enum counter counter, uint64_t n)
{
	__atomic_store_n(counters + counter, counters[counter] + n, __ATOMIC_RELAXED);
}

/** Any thread may call, with any lock held. */
static inline void counter_add(const struct hca *hca, enum counter counter, uint64_t n)
{
	uint64_t *counters = counters_here(hca);

	if (__builtin_expect(counters != NULL, 1))
		counters_add(counters, counter, n);
}

/** Returns the total of @hca in this process. Any thread may call. */
uint64_t counter_read(const struct hca *hca, enum counter counter);

/** Resets all counters in a forked child: they are the parent's. */
void counters_after_fork(void);

#endif
