/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events and their acknowledgement: completion channels (ibv_get_cq_event(3)), asynchronous events
 * (ibv_get_async_event(3)). An object counts the events that the program has got and those that it
 * acknowledged; its destruction waits until both are equal.
 *
 * How an object goes: the device's destroy command first (it purges what the program has not taken, after
 * which no further event can be taken), then events_wait(), then the memory.
 *
 * Both counters are atomic, and nothing else is shared: mutex and cond of the public objects are not used.
 */
#ifndef SOFTHCA_VERBS_OBJECT_EVENTS_H
#define SOFTHCA_VERBS_OBJECT_EVENTS_H

#include "verbs/object/objects.h"

/** Adds @count to a counter of events taken, or acknowledged. The last is the last that may touch the object. Any thread. */
static inline void events_count(uint32_t *counter, uint32_t count)
{
	__atomic_add_fetch(counter, count, __ATOMIC_RELEASE);
}

/**
 * True while events that the program has taken wait for acknowledgement. Free-running counters; a program that acknowledges
 * too much is not waited for.
 */
static inline bool events_outstanding(uint32_t taken, uint32_t acknowledged)
{
	return (int32_t)(taken - acknowledged) > 0;
}

/**
 * Waits until all events taken have been acknowledged. @call destroys the object of @kind, "CQ", in @context. No lock may be
 * held. Any thread.
 */
void events_wait(struct ibv_context *context, const char *call, const char *kind, const uint32_t *taken,
		 const uint32_t *acknowledged);

/** What struct user_context.async.taken is: counts an asynchronous event as taken by the program. */
void count_async_event(int type, void *object);

#endif
