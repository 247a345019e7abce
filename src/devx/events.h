/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal to the command interface: delivers events of objects made by commands.
 *
 * The device raises events in the relay `devx.events`, holding the locks of the queue that they concern. A subscription
 * is listed by its object and its channel. It lives while both exist, while it has pending events, and while a thread
 * takes one, so object and channel may be destroyed in either order. The lock `devx.subscriptions` covers all lists and
 * subscriptions; it is taken before those of channels.
 */
#ifndef SOFTHCA_DEVX_EVENTS_H
#define SOFTHCA_DEVX_EVENTS_H

#include "devx/context.h"

void devx_events_open(struct devx *devx);
/** No more events are raised, and no channel remains. */
void devx_events_close(struct devx *devx);

/** @object raises no more events. */
void devx_unsubscribe_all(struct devx *devx, struct devx_object *object);

/** Destroys the remaining channels. */
void devx_channels_close(struct devx *devx);

#endif
