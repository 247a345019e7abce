/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Substitute poller: a thread of the program that waits for a completion event sleeps on arrivals as well, and handles
 * them in place of the device thread, so that a message wakes one thread instead of two. DESIGN.md says when.
 */
#ifndef SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H
#define SOFTHCA_PROGRESS_SUBSTITUTE_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event_queue.h"

struct substitute_state {
	uint32_t beats;
	bool present;  /* a thread substitutes */
	bool resigned; /* it has returned arrivals to the device thread */
};

/** `beats` advances whenever a substitute polls. On the device thread. */
struct substitute_state substitute_state(void);

/**
 * As event_queue_take(), from a channel: blocks according to its descriptor's flags, and is a cancellation point. The
 * thread substitutes for the device thread meanwhile, if possible. Any thread may call; no lock held.
 */
int substitute_poller_take_event(struct event_queue *queue, int *type, void **object);

/** Discards the record of @queue, which is about to be destroyed. */
void substitute_poller_forget(struct event_queue *queue);

/** Disables substitutes in a forked child, which has only the forking thread and makes its device thread anew. */
void substitute_poller_after_fork(void);

#endif
