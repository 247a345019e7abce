/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until something happens to an rsocket: notifications of completions, events of the communication manager,
 * datagrams.
 *
 * Several threads may sleep for one rsocket. Each that wakes handles everything that has arrived, including arrivals
 * for which another thread waits. So a thread wakes the other sleepers when it changes the state, or when it consumes a
 * notification that the kernel may not have delivered to them yet. It does so by a user event on the channel
 * (rdma_write_cm_event(), or an eventfd for datagrams), which stays until the last sleeper has returned. No thread goes
 * back to sleep before then.
 */
#ifndef SOFTHCA_RSOCKET_WAIT_H
#define SOFTHCA_RSOCKET_WAIT_H

#include <poll.h>
#include <time.h>

#include "rsocket/objects.h"

/* Maximum number of descriptors for one sleep. */
enum { SLEEP_DESCRIPTORS = 3 };

/* How a call waits. */
struct wait_limits {
	bool dont_wait;       /* fail with -EAGAIN instead of waiting */
	uint64_t deadline_ns; /* 0: no time limit */
	/*
	 * Used with cancellation_restore() while the call sleeps, if the socket function that it replaces is a
	 * cancellation point (pthreads(7)); NULL otherwise.
	 */
	const int *may_be_cancelled;
	bool closing; /* the call is rclose(), which ends other threads' calls on the rsocket even if it is cancelled */
};

#define SECOND_NS 1000000000ull
#define MILLISECOND_NS 1000000ull

/** Returns the clock of all time limits, in nanoseconds. (rsocket/wake.c) */
uint64_t rsocket_now_ns(void);

/**
 * Registers the thread as a sleeper of @rs and fills in @descriptors for poll(2). Returns their number. The caller has
 * held the lock since it checked everything that it waits for. Returns 0, without registering, if @rs is a listener
 * with a request: nothing else can happen to a listener, and a thread that still sleeps is not waiting for a request.
 */
uint32_t sleep_begin(struct rsocket *rs, struct pollfd *descriptors);
/** Unregisters the sleeper, with the results of poll(2). The caller holds the lock. */
void sleep_end(struct rsocket *rs, const struct pollfd *descriptors, uint32_t count);

/** Wakes all sleepers of @rs. The caller holds the lock. (rsocket/wake.c) */
void rsocket_wake(struct rsocket *rs);

/** Handles everything that has arrived, without sleeping. The caller holds the lock. */
void rsocket_advance(struct rsocket *rs);
/**
 * Ensures that any later event ends a sleep. Returns true if an event may have arrived already. The caller holds the
 * lock.
 */
bool rsocket_arm(struct rsocket *rs);

/**
 * Handles arrivals and sleeps until @done. Returns 0, -EAGAIN if the call must not wait, -EINTR, -EBADF after rclose(),
 * or -ETIMEDOUT after the deadline. The caller holds the lock, which is released during sleeps. A thread that is
 * cancelled in a sleep releases the reference of its call; the caller must not own anything else.
 */
int rsocket_wait_until(struct rsocket *rs, const struct wait_limits *limits, bool (*done)(struct rsocket *rs));

#endif
