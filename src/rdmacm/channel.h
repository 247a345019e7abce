/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels (rdma_create_event_channel(3)): queues of events with a descriptor.
 *
 * The descriptor is an eventfd that counts (EFD_SEMAPHORE) one token per queued event, so it is readable while an event
 * waits. rdma_get_cm_event(3) first reads a token, then takes an event. Its read(2) blocks, obeys O_NONBLOCK, and is
 * interrupted or restarted by signals as the program chose. When an event is dropped before it was fetched, its token
 * is taken out as well; if a thread has just read that token, the thread finds no event and reads again.
 *
 * One lock, the lock of events, covers all channels; one is enough, because events are few. It is a leaf.
 */
#ifndef SOFTHCA_RDMACM_CHANNEL_H
#define SOFTHCA_RDMACM_CHANNEL_H

#include "rdmacm/objects.h"

void events_lock(void);
void events_unlock(void);

/** Creates a channel, for the program or for a synchronous ID. Returns NULL with errno on failure. Any thread. */
struct user_cm_channel *channel_create(void);

/** Closes the descriptor and frees the queued events. The program must no longer use @channel. */
void channel_destroy(struct user_cm_channel *channel);

/**
 * channel_enter() puts @id, which has no channel, on @channel. channel_leave() removes it from its channel, which may
 * free the channel. The caller does not hold the lock of events.
 */
void channel_enter(struct user_cm_channel *channel, struct user_cm_id *id);
void channel_leave(struct user_cm_id *id);

/** Removes one user from @channel. */
void channel_put(struct user_cm_channel *channel);

/** Allocates an event of @id. Returns NULL without memory. */
struct user_cm_event *event_new(struct user_cm_id *id, enum rdma_cm_event_type type, int status);

/**
 * Queues @event, which from then on belongs to the channel of its owner. Drops it if the owner is being destroyed, or
 * its channel has been. event_put_locked() is called under the lock of events, event_put() without it.
 */
void event_put_locked(struct user_cm_event *event);
void event_put(struct user_cm_event *event);

/** Queues a new event of @id. @deliver: as in struct user_cm_event. Returns 0 or -ENOMEM. */
int event_raise(struct user_cm_id *id, enum rdma_cm_event_type type, int status,
		bool (*deliver)(struct user_cm_event *event));

/**
 * Drops the events of @owner that were not fetched, only those of @group unless that is NULL, and waits until the
 * fetched ones are acknowledged. The caller holds no lock.
 */
void events_drain(struct user_cm_id *owner, struct user_cm_group *group);

/** Moves @id and its queued events to @to, after waiting as events_drain() does. */
void events_migrate(struct user_cm_id *id, struct user_cm_channel *to);

/**
 * Takes the next event out of @channel and does its remaining work on this thread. Returns 0 and *@event, or a negative
 * errno (-EAGAIN, -EINTR, -EBADF). A cancellation point; no lock is held there.
 */
int channel_next(struct user_cm_channel *channel, struct user_cm_event **event);

/**
 * Records that the program has acknowledged @event, and wakes threads that wait for that. The caller does not hold the
 * lock.
 */
void event_acknowledged(struct user_cm_event *event);

#endif
