/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stores to doorbell registers that ring on the storing thread (DESIGN.md, The storing thread): the store raises
 * SIGSEGV, and the handler skips it, rings the queues, and polls for an answer as ibv_poll_cq(3) would. The watcher
 * sleeps meanwhile. Used while processors are short, because the watcher would wait for one at each look.
 *
 * Not used while a thread blocks SIGSEGV, which would end the process, a debugger is attached, the program has
 * replaced the handler, or a doorbell record is stale (watch.h), for which the stored value counts.
 *
 * Owned by struct watcher; its lock covers all.
 */
#ifndef SOFTHCA_PROGRESS_STORING_THREAD_H
#define SOFTHCA_PROGRESS_STORING_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct watcher;

struct storing_thread {
	bool holds;             /* fault_signal_hold() was called */
	bool refused;           /* a thread had too little stack for the device */
	bool due;               /* stores_should_fault() has returned true */
	uint32_t count;         /* stores that have rung */
	uint32_t count_before;  /* at the last look of the watcher */
	uint32_t vain;          /* consecutive polls in vain */
	uint32_t answers;       /* since stores fault */
	uint32_t failures;      /* consecutive times that stores faulted in vain */
	uint64_t not_before_ns; /* CLOCK_MONOTONIC */
	/* Scans of the watcher: since when, how many, how many found a doorbell. */
	uint64_t scans_since_ns;
	uint32_t scans, scans_rung;
	uint64_t waited_ns, waited_at_ns; /* of the watcher for a processor, and when that was read */
};

/** Notes a scan of the watcher at @now_ns, and whether it found anything. */
void stores_note_scan(struct watcher *watcher, bool rang, uint64_t now_ns);

/** Returns true if stores should fault now. On the watcher's thread. */
bool stores_should_fault(struct watcher *watcher, uint64_t now_ns);

/** Makes stores fault. Returns false, and tries again later, if they cannot. */
bool stores_begin_to_fault(struct watcher *watcher);

/** Returns false, with all registers released, if stores do not fault or should no longer. */
bool stores_still_fault(struct watcher *watcher);

/** Releases the handler of SIGSEGV, when no register is left. */
void stores_end(struct watcher *watcher);

#endif
