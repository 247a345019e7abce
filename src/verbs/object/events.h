/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgement of completion events (ibv_get_cq_event(3)) and asynchronous events (ibv_get_async_event(3)): an
 * object is not freed before the program has acknowledged all events that it took. It is destroyed in this order: the
 * device's destroy command (which purges the events not yet taken, so that none can be taken later), events_wait(),
 * free.
 *
 * Both counters are atomic. The mutex and cond of the public objects are not used.
 */
#ifndef SOFTHCA_VERBS_OBJECT_EVENTS_H
#define SOFTHCA_VERBS_OBJECT_EVENTS_H

#include "verbs/object/objects.h"

/** Adds @count to a counter. After counting the last event the caller must not touch the object. Any thread. */
static inline void events_count(uint32_t *counter, uint32_t count)
{
	__atomic_add_fetch(counter, count, __ATOMIC_RELEASE);
}

/**
 * Returns true if events taken are not acknowledged yet; false after too many acknowledgements. The counters are
 * free-running.
 */
static inline bool events_outstanding(uint32_t taken, uint32_t acknowledged)
{
	return (int32_t)(taken - acknowledged) > 0;
}

/**
 * Waits until all events taken are acknowledged, for @call, which destroys an object of @kind ("CQ"). The caller holds
 * no lock. Any thread.
 */
void events_wait(struct ibv_context *context, const char *call, const char *kind, const uint32_t *taken,
		 const uint32_t *acknowledged);

/** Implements user_context.async.taken. */
void count_async_event(int type, void *object);

#endif
