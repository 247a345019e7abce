/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the command interface: events of objects made by command, on their way to who subscribed to them (devx.h).
 *
 * The device raises them in the relay `devx.events`, under the locks of whatever queue they are about. A subscription is listed by
 * its object and by its channel, and held by both together, by each event of it that waits, and by the thread that takes one:
 * so either may go first, and what waits is still good. The lock `devx.subscriptions` covers all lists and subscriptions; it is
 * taken before those of channels.
 */
#ifndef SOFTHCA_DEVX_EVENTS_H
#define SOFTHCA_DEVX_EVENTS_H

#include "devx/context.h"

/** The relay and the lock of a new context. */
void devx_events_open(struct devx *devx);
/** Nothing raises events any more, and no channel is left. */
void devx_events_close(struct devx *devx);

/** Ends all subscriptions to @object, which raises no events any more. */
void devx_unsubscribe_all(struct devx *devx, struct devx_object *object);

/** Destroys the channels that the program has left. */
void devx_channels_close(struct devx *devx);

#endif
