/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping for what an rsocket waits for: notifications of completions, events of the communication manager, datagrams.
 *
 * Several threads may sleep for one rsocket, and each looks at all that arrives when it wakes, also at what another one
 * waits for. So whoever takes a notification away, under which the kernel has woken the others perhaps not yet, and whoever
 * changes the state, wakes those that sleep: by an event of the program's own kind on the channel (rdma_write_cm_event(), or
 * an eventfd of datagrams), which stays until the last of them is back. Nobody lies down again before that.
 */
#ifndef SOFTHCA_RSOCKET_WAIT_H
#define SOFTHCA_RSOCKET_WAIT_H

#include <poll.h>
#include <time.h>

#include "rsocket/objects.h"

/* Descriptors that a sleep for one rsocket looks at, at most. */
enum { SLEEP_DESCRIPTORS = 3 };

/* How a call waits. */
struct wait_limits {
	bool dont_wait;       /* not at all */
	uint64_t deadline_ns; /* 0: for ever */
	/*
	 * What core/cancellation.h restores while it sleeps, as the socket function that the call stands for is a cancellation
	 * point (pthreads(7)). NULL: it is none.
	 */
	const int *may_be_cancelled;
	bool closing; /* it is rclose(), which ends what other threads do with the rsocket, cancelled or not */
};

#define SECOND_NS 1000000000ull
#define MILLISECOND_NS 1000000ull

/** The clock of all time limits, in nanoseconds. (rsocket/wake.c) */
uint64_t rsocket_now_ns(void);

/**
 * Enters the thread among those that sleep for @rs, and says what poll(2) is to look at: returns how many of @descriptors.
 * The lock is held, and has been since the thread looked at all that it waits for. 0, and it is not entered: @rs is a listener
 * with a request, which a thread that sleeps in spite of it does not ask for, and nothing else can happen to it.
 */
uint32_t sleep_begin(struct rsocket *rs, struct pollfd *descriptors);
/** Takes it out again, with what poll(2) said. The lock is held. */
void sleep_end(struct rsocket *rs, const struct pollfd *descriptors, uint32_t count);

/** Wakes all that sleep for @rs. The lock is held. (rsocket/wake.c) */
void rsocket_wake(struct rsocket *rs);

/** Handles all that has arrived, without sleeping. The lock is held. */
void rsocket_advance(struct rsocket *rs);
/** Sees to it that what comes from now on ends a sleep. True: something may have come before that. The lock is held. */
bool rsocket_arm(struct rsocket *rs);

/**
 * Until @done, handles what arrives, and sleeps. 0; or -EAGAIN if it is not to wait; -EINTR; -EBADF when rclose() was called;
 * -ETIMEDOUT after the deadline. The lock is held, but not while it sleeps. A thread that is cancelled there gives back the
 * reference of its call: whoever calls this holds nothing else.
 */
int rsocket_wait_until(struct rsocket *rs, const struct wait_limits *limits, bool (*done)(struct rsocket *rs));

#endif
