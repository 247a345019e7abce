/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Substitute poller: a thread of the program that waits for a completion event substitutes for the device thread. It
 * sleeps on arrivals as well as on its channel, handles arrivals itself, and returns with the event that results. So a
 * message wakes one thread instead of two (the device thread, which would then wake the program's).
 *
 * The thread sleeps in read(2), like one that waits only for a channel, because read(2) ends with EINTR or restarts
 * after a signal as the program chose (SA_RESTART); poll(2) and epoll_wait(2) always end. It reads an eventfd, `wake`,
 * to which the kernel adds when something arrives (IOCB_CMD_POLL of io_submit(2) on progress_arrivals(), with
 * IOCB_FLAG_RESFD), and to which raising an event in the channel also adds (core/event_queue.h).
 *
 * One thread substitutes at a time, and only if no other thread waits in the same way or reads its events without
 * waiting: such threads need the permanent device thread. A substitute stops if arrivals are not for it
 * (SUBSTITUTE_VAIN), since a signal does not interrupt the handling of arrivals, and if the kernel refuses a system
 * call.
 *
 * The device thread monitors `beats`, which advance whenever a substitute polls: see progress.c.
 */
#ifndef SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H
#define SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event_queue.h"

struct substitute_state {
	uint32_t beats;
	bool present;  /* a thread substitutes */
	bool resigned; /* the substitute has returned arrivals to the device thread */
};

/** Returns the current state. On the device thread. */
struct substitute_state substitute_state(void);

/**
 * Takes an event as event_queue_take() does, from a channel: blocks according to its descriptor's flags, and is a
 * cancellation point. The thread substitutes for the device thread meanwhile, if possible. Any thread may call; no lock
 * held.
 */
int substitute_poller_take_event(struct event_queue *queue, int *type, void **object);

/** Discards the record of @queue, which is about to be destroyed. */
void substitute_poller_forget(struct event_queue *queue);

/** Disables substitutes in a forked child, which has only the forking thread and makes its device thread anew. */
void substitute_poller_after_fork(void);

#endif
