/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until something happens to an rsocket.
 *
 * Several threads may sleep for one rsocket. Each that wakes handles everything that has arrived. So it wakes the other
 * sleepers when it changes the state, or consumes a notification that the kernel may not have delivered to them. It
 * does so by a user event on the channel (rdma_write_cm_event(), or an eventfd for datagrams), which stays until the
 * last sleeper has returned; no thread goes back to sleep before then.
 */
#ifndef SOFTHCA_RSOCKET_WAIT_H
#define SOFTHCA_RSOCKET_WAIT_H

#include <poll.h>
#include <time.h>

#include "rsocket/objects.h"

/* Descriptors for one sleep. */
enum { SLEEP_DESCRIPTORS = 3 };

struct wait_limits {
	bool dont_wait;       /* fail with -EAGAIN */
	uint64_t deadline_ns; /* 0: no time limit */
	/*
	 * For cancellation_restore() in sleeps, if the replaced socket function is a cancellation point (pthreads(7));
	 * otherwise NULL.
	 */
	const int *may_be_cancelled;
	bool closing; /* rclose(), which ends other threads' calls even if it is cancelled */
};

#define SECOND_NS 1000000000ull
#define MILLISECOND_NS 1000000ull

/** Returns the clock of all time limits, in nanoseconds. (rsocket/wake.c) */
uint64_t rsocket_now_ns(void);

/**
 * Registers the thread as a sleeper and returns the number of @descriptors for poll(2). The caller has held the lock
 * since it checked everything that it waits for. Returns 0, without registering, if @rs is a listener with a request,
 * because nothing else can happen to a listener.
 */
uint32_t sleep_begin(struct rsocket *rs, struct pollfd *descriptors);
/** Unregisters the sleeper, with the results of poll(2). The caller holds the lock. */
void sleep_end(struct rsocket *rs, const struct pollfd *descriptors, uint32_t count);

/** Wakes all sleepers. The caller holds the lock. (rsocket/wake.c) */
void rsocket_wake(struct rsocket *rs);

/** Handles everything that has arrived. The caller holds the lock. */
void rsocket_advance(struct rsocket *rs);
/** Ensures that any later event ends a sleep; returns true if one may have come already. The caller holds the lock. */
bool rsocket_arm(struct rsocket *rs);

/**
 * Handles arrivals and sleeps until @done. Returns 0, -EAGAIN if it must not wait, -EINTR, -EBADF after rclose(), or
 * -ETIMEDOUT. The caller holds the lock, which is released during sleeps, and must not own anything except its
 * reference, which a cancelled thread releases.
 */
int rsocket_wait_until(struct rsocket *rs, const struct wait_limits *limits, bool (*done)(struct rsocket *rs));

#endif
