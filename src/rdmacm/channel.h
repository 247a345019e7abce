/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels (rdma_create_event_channel(3)): queues of events with a descriptor.
 *
 * The descriptor is an eventfd (EFD_SEMAPHORE) with one token per queued event. rdma_get_cm_event(3) first reads a
 * token, then takes an event: read(2) blocks, obeys O_NONBLOCK, and is interrupted or restarted by signals as the
 * program chose. When an event is dropped, its token is removed; a thread that has just read it finds no event and
 * reads again.
 *
 * One lock, the lock of events, covers all channels, because events are few. It is a leaf.
 */
#ifndef SOFTHCA_RDMACM_CHANNEL_H
#define SOFTHCA_RDMACM_CHANNEL_H

#include "rdmacm/objects.h"

void events_lock(void);
void events_unlock(void);

/** Creates a channel. Returns NULL with errno on failure. Any thread. */
struct user_cm_channel *channel_create(void);

/** Closes the descriptor and frees the queued events. The program must no longer use @channel. */
void channel_destroy(struct user_cm_channel *channel);

/**
 * Put @id, which is on no channel, on @channel; remove it from its channel, which may free the channel. The caller does
 * not hold the lock of events.
 */
void channel_enter(struct user_cm_channel *channel, struct user_cm_id *id);
void channel_leave(struct user_cm_id *id);

/** Removes one user from @channel. */
void channel_put(struct user_cm_channel *channel);

/** Allocates an event of @id. Returns NULL without memory. */
struct user_cm_event *event_new(struct user_cm_id *id, enum rdma_cm_event_type type, int status);

/**
 * Queues @event, which then belongs to the channel of its owner; drops it if the owner is being destroyed or its
 * channel has been. event_put_locked() is called under the lock of events, event_put() without it.
 */
void event_put_locked(struct user_cm_event *event);
void event_put(struct user_cm_event *event);

/** As event_put(), for a new event. Returns 0 or -ENOMEM. */
int event_raise(struct user_cm_id *id, enum rdma_cm_event_type type, int status,
		bool (*deliver)(struct user_cm_event *event));

/**
 * Drops the events of @owner (only those of @group unless that is NULL) that were not fetched, and waits until the
 * others are acknowledged. The caller holds no lock.
 */
void events_drain(struct user_cm_id *owner, struct user_cm_group *group);

/** Moves @id and its queued events to @to, after waiting as events_drain() does. */
void events_migrate(struct user_cm_id *id, struct user_cm_channel *to);

/**
 * Takes the next event and does its remaining work. Returns 0, or a negative errno (-EAGAIN, -EINTR, -EBADF). A
 * cancellation point, where no lock is held.
 */
int channel_next(struct user_cm_channel *channel, struct user_cm_event **event);

/** Wakes threads that wait for the acknowledgement. The caller does not hold the lock. */
void event_acknowledged(struct user_cm_event *event);

#endif
