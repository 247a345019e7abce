/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording of the steps of requests (`softhca run --timeline`) into a file (timeline_file.h, DESIGN.md). Any thread
 * may put records, under any lock, without waiting.
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

/* Constant once the devices exist. */
extern bool timeline_on;

static inline bool timeline_is_on(void)
{
	return unlikely(timeline_on);
}

/**
 * Starts recording according to @settings. Returns 0, also if recording is off, or a negative errno with a text in
 * @error. One thread, while devices are made.
 */
int timeline_open(const struct settings *settings, char *error, size_t size);

/** Starts a new file in a forked child. */
void timeline_after_fork(void);

/* Times in the file are ticks of the processor. */
extern bool timeline_ticks;

/** Returns CLOCK_MONOTONIC in ns, the unit of the file if ticks are not steady. */
uint64_t timeline_monotonic(void);

/** Returns the current time in the unit of the file. */
static inline uint64_t timeline_now(void)
{
#ifdef __x86_64__
	if (likely(timeline_ticks))
		return __builtin_ia32_rdtsc();
#endif
	return timeline_monotonic();
}

/*
 * Time of this thread's current step, reused for its immediate consequences, because reading the clock costs more than
 * the rest of a record. The code that sets it resets it before anything else. 0: none.
 */
extern __thread uint64_t timeline_time_of_call __attribute__((tls_model("initial-exec")));

/* Members of a record that timeline_put() takes together. */
#define TIMELINE_WHAT(kind, opcode, index)                                                                             \
	((uint32_t)(uint16_t)(index) | (uint32_t)(uint8_t)(opcode) << 16 | (uint32_t)(kind) << 24)

/*
 * Ticks between two reads of the clock. Times in between are interpolated, so that those of several files can be
 * compared.
 */
#define TIMELINE_CLOCK_EVERY (UINT64_C(1) << 24)

/** Slow path of timeline_put(): this thread has no chunk yet, its chunk is full, or a clock record is due. */
RARE void timeline_put_slowly(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length,
			      uint64_t value);

/**
 * Puts a record. @what: TIMELINE_WHAT(); the rest as in struct timeline_record, @number without the lap. Only while
 * recording is on.
 */
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
	/* Last, so that a record half written by a killed process does not count. */
	__atomic_store_n(&record->number, (number & 0xffffff) | slot->timeline_lap, __ATOMIC_RELEASE);
}

/*
 * A step that follows directly from another in the same call turns its record into one of both (timeline_file.h), which
 * saves writes and room.
 */

/** Returns this thread's latest record if it has this kind, @time (not 0) and object, otherwise NULL. */
static inline struct timeline_record *timeline_latest(uint64_t time, enum timeline_kind kind, uint32_t number)
{
	const struct epoch_slot *slot = epoch_this_thread;
	struct timeline_record *latest;

	/* If the chunk is full, the next record is in another one; without a chunk both are NULL. */
	if (unlikely(!time || !slot || slot->timeline_next == slot->timeline_end))
		return NULL;
	/* Before the first record is the head of the chunk, which has no kind. */
	latest = slot->timeline_next - 1;
	return latest->time == time && latest->what >> 24 == (uint32_t)kind &&
			       ((latest->number ^ number) & 0xffffff) == 0
		       ? latest
		       : NULL;
}

/** Replaces members of a record, which meanwhile is not valid for readers. */
static inline void timeline_change(struct timeline_record *record, uint32_t what, uint32_t psn, uint32_t length,
				   uint64_t value)
{
	uint32_t number = record->number;

	__atomic_store_n(&record->number, 0, __ATOMIC_RELAXED);
	order_before_stores();
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

/** Enters a queue pair, or changes its @row, which is 0 at first; its number is not 0. The lock of the QP is held. */
void timeline_put_qp(uint32_t *row, const struct timeline_qp *qp);

#endif
