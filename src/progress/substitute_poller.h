/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that waits for a completion event stands in for the device thread: it sleeps on what arrives as well
 * as on its channel, handles it by itself, and returns with the event that came of it. So a message wakes one thread, and not the
 * device thread, which wakes the program's.
 *
 * The thread sleeps in read(2), as one that waits for a channel alone, since that is what ends with EINTR or goes on after a
 * signal as the program chose (SA_RESTART); poll(2) and epoll_wait(2) always end. What it reads is an eventfd, `wake`, to which
 * the kernel adds when something arrives (IOCB_CMD_POLL of io_submit(2) on progress_arrivals(), with IOCB_FLAG_RESFD), and
 * which whoever raises an event in the channel adds to (core/event_queue.h).
 *
 * One thread stands in at a time, and only if no other one waits in the same way or reads its events when it likes: these
 * need somebody who is always there, the device thread. It gives up when arrivals are not for it (TUNABLE_SUBSTITUTE_VAIN), since
 * a signal that comes while it handles some does not interrupt it, and when the kernel refuses something.
 *
 * The device thread goes by `beats`, which move each time that a thread stands in and looks: see progress.c.
 */
#ifndef SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H
#define SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event_queue.h"

struct substitute_state {
	uint32_t beats;
	bool present;  /* a thread stands in */
	bool resigned; /* arrivals are the device thread's again, at once */
};

/** Of this moment. The device thread. */
struct substitute_state substitute_state(void);

/**
 * As event_queue_take(), of a channel: blocks as its descriptor's flags say, and is a cancellation point. The thread stands in
 * meanwhile, if it may. Any thread; no lock held.
 */
int substitute_poller_take_event(struct event_queue *queue, int *type, void **object);

/** @queue goes: nobody waits for it any more. */
void substitute_poller_forget(struct event_queue *queue);

/**
 * In a forked child, whose only thread is that which forked: none stands in from now on, so a child makes do with what it makes
 * anew, the device thread.
 */
void substitute_poller_after_fork(void);

#endif
