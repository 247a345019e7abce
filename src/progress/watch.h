/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polling of exported queues. The program rings their doorbells without a call: mlx5dv_init_obj(3) gives it ring,
 * doorbell records and a register that is plain memory. The records contain all necessary state (mlx5-formats 1.16), so
 * a thread scans the records of all such queues. It does so at least every 50 us, if it has a processor, for 10 ms
 * after each doorbell. After that it sleeps until a program stores to a doorbell register (progress/trap.h) or, if such
 * stores cannot be trapped, for an eighth of the time without doorbells. DESIGN.md has the figures.
 *
 * A watch is embedded in its queue, which stops it before it is freed. The thread, one per device, is started when
 * something is to be watched; it blocks all signals, sleeps when nothing is watched, and holds no lock while a queue is
 * rung. In a forked child nothing is watched.
 */
#ifndef SOFTHCA_PROGRESS_WATCH_H
#define SOFTHCA_PROGRESS_WATCH_H

#include <pthread.h>
#include <stdint.h>

#include "progress/trap.h"

struct watch {
	struct watch *next, **link; /* in the list of the watcher; link NULL: not watched */
	const uint32_t *records;
	uint32_t count;   /* number of records: 1 or 2 */
	bool in_umem;     /* set before watch_start(): the records may be unmapped while watched */
	bool at_once;     /* set before watch_start(): @rung is also called for the initial values of the records */
	uint32_t seen[2]; /* also read by @rung */
	/*
	 * The queue has restarted, its last record has not changed since, and no doorbell was rung: the record's value
	 * is not valid (watch_restart()). Atomic: read by @rung.
	 */
	bool stale;
	uint32_t number; /* number of the queue pair, which its doorbells contain */
	uint32_t now[2]; /* for in_umem: values at the last scan */
	void (*rung)(struct watch *watch);
};

struct watcher {
	pthread_mutex_t lock;   /* covers all below, and watches; a leaf */
	pthread_cond_t stopped; /* signalled when a queue has been rung; see watch_stop */
	struct watch *first;
	struct watch *ringing; /* watch with a running function */
	uint32_t stale;        /* number of stale watches */
	struct trap trap;
	pthread_t thread;
	int wake; /* eventfd(2) that interrupts the thread's sleep */
	bool started;
};

void watcher_init(struct watcher *watcher);
void watcher_after_fork(struct watcher *watcher);

/**
 * Calls @rung on the watcher's thread whenever one of the @count (1 or 2) @records has changed, until watch_stop().
 * During the call, watch->seen has the new values. A watch that already runs is left unchanged. Returns 0, or -EAGAIN
 * without a thread. Any thread may call.
 */
int watch_start(struct watcher *watcher, struct watch *watch, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch));

/**
 * Restarts queue pair @number. An adapter reads a doorbell record when a doorbell is rung, so a value left in the last
 * record from before must not count. If that record is not 0, the watch is stale until the record changes or a doorbell
 * register names the queue pair; then @rung is called. Returns true if it is stale. Waits until @rung does not run; no
 * lock that @rung takes may be held. If @watch is not started, does nothing and returns false. Any thread may call.
 */
bool watch_restart(struct watcher *watcher, struct watch *watch, uint32_t number);

/** Stops @watch. On return @rung is not running and will not run. No lock that @rung takes may be held. */
void watch_stop(struct watcher *watcher, struct watch *watch);

/**
 * Add and remove doorbell registers to which programs store when they ring; see trap_add() and trap_remove(). Any
 * thread may call.
 */
void watch_page(struct watcher *watcher, void *page);
void unwatch_page(struct watcher *watcher, void *page);

#endif
