/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording what becomes of requests (`softhca run --timeline`): each step puts a record of 32 bytes into memory that is a file
 * (observe/timeline_file.h). Off, it costs those who record a test that is not on the way of most requests: calls of the data
 * path are exchanged in the tables of contexts, and what the device does is recorded where it tests for something else already.
 *
 * Records are put by any thread, under any lock, and wait for nobody: each thread has a chunk of its own, which hangs on its
 * epoch slot. Memory is bounded: the oldest chunk is overwritten.
 */
#ifndef SOFTHCA_OBSERVE_TIMELINE_H
#define SOFTHCA_OBSERVE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/compiler.h"
#include "core/epoch.h"
#include "observe/timeline_file.h"

struct settings;
union ibv_gid;

/* True from the making of the devices on, if the setting says so. */
extern bool timeline_on;

static inline bool timeline_is_on(void)
{
	return unlikely(timeline_on);
}

/**
 * Begins to record as @settings say. Returns 0, also if they say nothing, or a negative errno with a text in @error. One thread,
 * while devices are made.
 */
int timeline_open(const struct settings *settings, char *error, size_t size);

/** In a forked child: begins a file of its own. */
void timeline_after_fork(void);

/* True if the units of the file are ticks of the processor. */
extern bool timeline_ticks;

/** CLOCK_MONOTONIC in ns, the units of the file where ticks are not steady. */
uint64_t timeline_monotonic(void);

/** Now, in the units of the file. */
static inline uint64_t timeline_now(void)
{
#ifdef __x86_64__
	if (likely(timeline_ticks))
		return __builtin_ia32_rdtsc();
#endif
	return timeline_monotonic();
}

/*
 * The time of what this thread is doing, for what follows from it at once: looking at the clock costs more than all else of a record.
 * Whoever sets it takes it back before the thread does anything else. 0: there is none.
 */
extern __thread uint64_t timeline_time_of_call __attribute__((tls_model("initial-exec")));

/* Where in a record things go: the members that timeline_put() takes together. */
#define TIMELINE_WHAT(kind, opcode, index)                                                                             \
	((uint32_t)(uint16_t)(index) | (uint32_t)(uint8_t)(opcode) << 16 | (uint32_t)(kind) << 24)

/* What is between two looks at the clock is reckoned by the ticks: those of one file are compared with those of others. */
#define TIMELINE_CLOCK_EVERY (UINT64_C(1) << 24)

/** timeline_put() where this thread has no chunk yet, or it is full, or the clock is due. */
RARE void timeline_put_slowly(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length,
			      uint64_t value);

/** Puts a record. @what: TIMELINE_WHAT(); the rest as in struct timeline_record, @number without the lap. Only if it is on. */
static inline void timeline_put(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length,
				uint64_t value)
{
	struct epoch_slot *slot = epoch_this_thread;
	struct timeline_record *record;

	if (unlikely(!slot || slot->timeline_next == slot->timeline_end ||
		     time - slot->timeline_clock > TIMELINE_CLOCK_EVERY)) {
		timeline_put_slowly(time, what, number, psn, length, value);
		return;
	}
	record = slot->timeline_next++;
	record->time = time;
	record->value = value;
	record->length = length;
	record->psn = psn;
	record->what = what;
	/* Last, so that what a killed process has half written does not count. */
	__atomic_store_n(&record->number, (number & 0xffffff) | slot->timeline_lap, __ATOMIC_RELEASE);
}

/*
 * Much follows from something else at once, by the same call. Then the record of the one becomes a record of both (timeline_file.h):
 * less to write, and more requests in a file.
 */

/** The record that this thread has put last, if that is of this kind, @time and object, or NULL, as if @time is 0. */
static inline struct timeline_record *timeline_latest(uint64_t time, enum timeline_kind kind, uint32_t number)
{
	const struct epoch_slot *slot = epoch_this_thread;
	struct timeline_record *latest;

	/* Of a full chunk what comes next is in another one; a thread without a chunk has an empty one at NULL. */
	if (unlikely(!time || !slot || slot->timeline_next == slot->timeline_end))
		return NULL;
	/* In front of the first one is the head of the chunk, which is of no kind. */
	latest = slot->timeline_next - 1;
	return latest->time == time && latest->what >> 24 == (uint32_t)kind &&
			       ((latest->number ^ number) & 0xffffff) == 0
		       ? latest
		       : NULL;
}

/** Exchanges members of a record, which does not count meanwhile. */
static inline void timeline_change(struct timeline_record *record, uint32_t what, uint32_t psn, uint32_t length,
				   uint64_t value)
{
	uint32_t number = record->number;

	__atomic_store_n(&record->number, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	record->what = what;
	record->psn = psn;
	record->length = length;
	record->value = value;
	__atomic_store_n(&record->number, number, __ATOMIC_RELEASE);
}

static inline void timeline_begin_call(uint64_t time)
{
	timeline_time_of_call = time;
}

static inline void timeline_end_call(void)
{
	timeline_time_of_call = 0;
}

static inline uint64_t timeline_time(void)
{
	return timeline_time_of_call ? timeline_time_of_call : timeline_now();
}

/** Enters a queue pair, or changes its @row, which is 0 at first; its number is not 0. The caller has the lock of the QP. */
void timeline_put_qp(uint32_t *row, const struct timeline_qp *qp);

#endif
