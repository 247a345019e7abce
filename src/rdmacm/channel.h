/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels (rdma_create_event_channel(3)): queues of events behind a descriptor.
 *
 * The descriptor is an eventfd that counts (EFD_SEMAPHORE): one token per queued event, so that it is readable as long
 * as one waits. rdma_get_cm_event(3) reads a token, in a read(2) that blocks, obeys O_NONBLOCK, and is interrupted or
 * restarted by signals as the program chose, then takes an event. To drop an event that was not fetched, its token is
 * taken back; if a thread has just read that, it finds no event and reads again.
 *
 * One lock for all channels, a leaf: events are few.
 */
#ifndef SOFTHCA_RDMACM_CHANNEL_H
#define SOFTHCA_RDMACM_CHANNEL_H

#include "rdmacm/objects.h"

void events_lock(void);
void events_unlock(void);

/** A channel for the program, or of a synchronous id. NULL with errno. Any thread. */
struct user_cm_channel *channel_create(void);

/** The program is done with it: closes the descriptor, frees what waits. */
void channel_destroy(struct user_cm_channel *channel);

/**
 * Puts @id, which is on none, on @channel; takes it off, which may free the channel. The lock of events is not held.
 */
void channel_enter(struct user_cm_channel *channel, struct user_cm_id *id);
void channel_leave(struct user_cm_id *id);

/** @channel has one user less. */
void channel_put(struct user_cm_channel *channel);

/** A new event of @id. NULL: no memory. */
struct user_cm_event *event_new(struct user_cm_id *id, enum rdma_cm_event_type type, int status);

/**
 * Queues @event, which the channel of its owner owns from now on. Drops it if the owner is being destroyed, or if its
 * channel is gone. event_put_locked() is called under the lock of events, event_put() is not.
 */
void event_put_locked(struct user_cm_event *event);
void event_put(struct user_cm_event *event);

/** Queues a new event of @id. @deliver: as in struct user_cm_event. Returns 0 or -ENOMEM. */
int event_raise(struct user_cm_id *id, enum rdma_cm_event_type type, int status,
		bool (*deliver)(struct user_cm_event *event));

/**
 * Drops the events of @owner that were not fetched, those of @group only if that is not NULL; and waits until those
 * that were fetched are acknowledged. No lock is held.
 */
void events_drain(struct user_cm_id *owner, struct user_cm_group *group);

/** Moves the queued events of @id with it to @to, waiting as events_drain() does. */
void events_migrate(struct user_cm_id *id, struct user_cm_channel *to);

/**
 * Takes the next event out of @channel and does the work that is left, on this thread. 0 and *@event, or a negative
 * errno (-EAGAIN, -EINTR, -EBADF). A cancellation point that holds nothing.
 */
int channel_next(struct user_cm_channel *channel, struct user_cm_event **event);

/**
 * An event that was handed out is not the program's any more: threads that wait for that go on. The lock is not held.
 */
void event_acknowledged(struct user_cm_event *event);

#endif
