/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events and their acknowledgement: completion channels (ibv_get_cq_event(3)), asynchronous events
 * (ibv_get_async_event(3)). An object counts the events that the program has got and those that it
 * acknowledged; its destruction waits until both are equal.
 *
 * How an object goes: the device's destroy command first (it purges what the program has not taken, after
 * which no further event can be taken), then …_wait_events(), then the memory.
 */
#ifndef SOFTHCA_VERBS_EVENTS_H
#define SOFTHCA_VERBS_EVENTS_H

#include "verbs/objects.h"

/** Waits until all events taken have been acknowledged. No lock of the object may be held. Any thread. */
void user_srq_wait_events(struct user_srq *srq);
void user_qp_wait_events(struct user_qp *qp);

/**
 * True while events that the program has taken wait for acknowledgement. Free-running counters, under the object's
 * mutex; a program that acknowledges too much is not waited for.
 */
static inline bool events_outstanding(uint32_t taken, uint32_t acknowledged)
{
	return (int32_t)(taken - acknowledged) > 0;
}

/** What struct user_context.async.taken is: counts an asynchronous event as taken by the program. */
void count_async_event(int type, void *object);

#endif
