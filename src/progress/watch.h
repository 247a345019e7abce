/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues that a program rings behind our back: mlx5dv_init_obj(3) gives it ring, doorbell records and a register that
 * is plain memory, and no call says that it stored to them. The records tell everything (mlx5-formats 1.16), so a
 * thread scans those of all such queues: as long as something rang in the last 10 ms at least every 50 us, if it gets
 * a processor; after that it sleeps until a program stores to a doorbell register (progress/trap.h), or, where such stores
 * cannot be trapped, for an eighth of the time that it has been silent. docs/inside/decisions.md has the figures.
 *
 * A watch is embedded in its queue, which stops it before it goes. The thread, one per device, exists once something
 * is to be watched; it blocks all signals, sleeps when nothing is, and holds no lock while a queue is rung. In a
 * forked child nothing is watched.
 */
#ifndef SOFTHCA_PROGRESS_WATCH_H
#define SOFTHCA_PROGRESS_WATCH_H

#include <pthread.h>
#include <stdint.h>

#include "progress/trap.h"

struct watch {
	struct watch *next, **link; /* in the list of the watcher; link NULL: not watched */
	const uint32_t *records;
	uint32_t count;   /* of records: 1 or 2 */
	bool in_umem;     /* set before watch_start(): the records may be unmapped while they are watched */
	bool at_once;     /* set before watch_start(): @rung is also called for the records as they are at the start */
	uint32_t seen[2]; /* read by @rung, too */
	/*
	 * The value that the last record had when its queue started anew, with no doorbell rung since: it does not count (watch_restart()).
	 * Atomic: read by @rung.
	 */
	bool stale;
	uint32_t number; /* of the queue pair, which its doorbells name */
	uint32_t now[2]; /* of in_umem: at the last look */
	void (*rung)(struct watch *watch);
};

struct watcher {
	pthread_mutex_t lock;   /* of all below, and of watches; a leaf */
	pthread_cond_t stopped; /* a queue has been rung: see watch_stop */
	struct watch *first;
	struct watch *ringing; /* whose function runs */
	uint32_t stale;        /* watches that are */
	struct trap trap;
	pthread_t thread;
	int wake; /* eventfd(2) that interrupts its sleep */
	bool started;
};

void watcher_init(struct watcher *watcher);
void watcher_after_fork(struct watcher *watcher);

/**
 * Calls @rung on the watcher's thread whenever one of the @count (1 or 2) @records has changed, until watch_stop(). Then watch->seen has
 * the values that @rung is called for. A watch that runs goes on as it is. Returns 0, or -EAGAIN without a thread. Any thread.
 */
int watch_start(struct watcher *watcher, struct watch *watch, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch));

/**
 * Queue pair @number starts anew. An adapter reads a doorbell record when a doorbell is rung, so the value that a former life left in
 * the last record must not count. If that record is not 0, the watch is stale until the record changes or a doorbell register names
 * the queue pair; then @rung is called. Returns true if it is stale. Waits until @rung does not run; no lock that @rung takes may be
 * held. Does nothing, and returns false, if @watch does not run. Any thread.
 */
bool watch_restart(struct watcher *watcher, struct watch *watch, uint32_t number);

/** After the return @rung does not run and will not run. No lock that it takes may be held. */
void watch_stop(struct watcher *watcher, struct watch *watch);

/** Doorbell registers that programs store to when they ring; see trap_add() and trap_remove(). Any thread. */
void watch_page(struct watcher *watcher, void *page);
void unwatch_page(struct watcher *watcher, void *page);

#endif
