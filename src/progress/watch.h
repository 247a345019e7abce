/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polling of exported queues (mlx5dv_init_obj(3), DESIGN.md). Their doorbell records contain all necessary state
 * (mlx5-formats 1.16), so a thread scans them, or the thread that stores to a doorbell register (storing_thread.h).
 *
 * A watch is embedded in its queue, which stops it before it is freed. The thread, one per device, holds no lock while
 * a queue is rung; one thread at a time rings. In a forked child nothing is watched.
 */
#ifndef SOFTHCA_PROGRESS_WATCH_H
#define SOFTHCA_PROGRESS_WATCH_H

#include <pthread.h>
#include <stdint.h>

#include "progress/storing_thread.h"
#include "progress/trap.h"

struct watch {
	struct watch *next, **link; /* in the list of the watcher; link NULL: not watched */
	const uint32_t *records;
	uint32_t count;   /* 1 or 2 */
	bool in_umem;     /* set before watch_start(): the records may be unmapped while watched */
	bool at_once;     /* set before watch_start(): @rung is also called for the initial values */
	uint32_t seen[2]; /* also read by @rung */
	/*
	 * The queue has restarted, its last record has not changed since, and no doorbell was rung: the record is
	 * invalid (watch_restart()). Atomic: read by @rung.
	 */
	bool stale;
	uint32_t number; /* QP number in its doorbells */
	uint32_t now[2]; /* for in_umem: values at the last scan */
	void (*rung)(struct watch *watch);
};

struct hca;

struct watcher {
	pthread_mutex_t lock;   /* covers all below, and watches; a leaf; PTHREAD_MUTEX_ERRORCHECK */
	pthread_cond_t stopped; /* a queue has been rung */
	struct hca *hca;
	struct watch *first;
	struct watch *ringing; /* watch with a running function */
	bool scanning, again;  /* a thread scans; another one asks it to scan once more */
	uint32_t stale;        /* number of stale watches */
	struct trap trap;
	struct storing_thread stores;
	pthread_t thread;
	int wake; /* eventfd(2) that interrupts the thread's sleep */
	bool started;
	uint64_t checked_ns; /* used by the thread only: time of the latest check of its descriptors */
};

void watcher_init(struct watcher *watcher, struct hca *hca);
void watcher_after_fork(struct watcher *watcher);

/**
 * Calls @rung whenever one of the @count (1 or 2) @records has changed, until watch_stop(), on the watcher's thread or
 * in a handler of SIGSEGV on the thread that stores to a doorbell register. During the call, watch->seen has the new
 * values. A watch that already runs is left unchanged. Returns 0, or -EAGAIN without a thread. Any thread may call.
 */
int watch_start(struct watcher *watcher, struct watch *watch, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch));

/**
 * Restarts queue pair @number. An adapter reads a doorbell record when a doorbell is rung, so an old value in the last
 * record must not count: if it is not 0, the watch is stale until the record changes or a doorbell register names the
 * queue pair; then @rung is called. Returns true if stale, false if @watch is not started. Waits until @rung does not
 * run; no lock that @rung takes may be held. Any thread may call.
 */
bool watch_restart(struct watcher *watcher, struct watch *watch, uint32_t number);

/** On return @rung is not running and will not run. No lock that @rung takes may be held. */
void watch_stop(struct watcher *watcher, struct watch *watch);

/**
 * Rings all queues whose records have changed. If another thread does, it repeats that and this call returns at once.
 * Returns true if any rang. The lock is held, but not while ringing.
 */
bool watcher_scan(struct watcher *watcher);
/** Ends the thread's sleep. Any thread may call. */
void watcher_wake(const struct watcher *watcher);

/** As trap_add() and trap_remove(). Any thread may call. */
void watch_page(struct watcher *watcher, void *page);
void unwatch_page(struct watcher *watcher, void *page);

#endif
