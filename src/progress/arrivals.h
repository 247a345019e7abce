/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors on which the device thread sleeps. Descriptors of arrivals are in an epoll of their own, on which a
 * substitute can sleep as well; that epoll is in the other one. A program may close any of them.
 *
 * For this directory and the handlers of fork(2). Its lock orders the start of `ready` functions and removals, and is a leaf. The descriptors of
 * watched_fd belong to the callers.
 */
#ifndef SOFTHCA_PROGRESS_ARRIVALS_H
#define SOFTHCA_PROGRESS_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "progress/progress.h"

/* descriptors handled per wake-up */
enum { EPOLL_EVENTS = 16 };

#define FOR_EVER UINT64_MAX

/** Reason why a sleep ended; all except NOT_WOKEN: a descriptor. */
enum woken { NOT_WOKEN, WOKEN, WOKEN_BY_ARRIVAL };

/** Descriptors found ready by a sleep. */
struct ready_descriptors {
	struct epoll_event event[EPOLL_EVENTS];
	int count;
	uint32_t removals; /* number of removals before the sleep */
	bool closed;       /* the program has closed the thread's own descriptors */
	bool by_itself;    /* the thread has called progress_wake() */
};

/** Opens the descriptors, once. The caller holds a lock that excludes other callers. Returns 0 or -EAGAIN. */
int arrivals_open(void);

/** Watches for @events. @of_arrivals: in the epoll of arrivals. Returns 0 or a negative errno. */
int arrivals_watch(struct watched_fd *watched, uint32_t events, bool of_arrivals);

/** Sets whether arrivals end a sleep. On the device thread. */
void arrivals_set_wake(bool wake);
/** Sleeps until a descriptor is ready, or until @until_ns of CLOCK_MONOTONIC. On the device thread. */
void arrivals_wait(struct ready_descriptors *ready, uint64_t until_ns);
/** Forgets calls of progress_wake() on the device thread, which begins to poll. Any thread. */
void arrivals_begin_poll(void);
/** Calls the `ready` functions. On the device thread, no lock held. */
enum woken arrivals_handle(const struct ready_descriptors *ready);

/** Returns the epoll descriptor to sleep on for arrivals; -1: none. Any thread may call. */
int progress_arrivals(void);
/** Reads the data that pollers leave in the descriptors of arrivals. Any thread may call, outside an epoch section. */
void progress_drain(void);

/** Handlers around fork(): hold the lock. The child has no descriptors. */
void arrivals_before_fork(void);
void arrivals_after_fork(bool child);

#endif
