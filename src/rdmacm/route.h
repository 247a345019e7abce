/* SPDX-License-Identifier: BSD-2-Clause */
/* Routes without the addresses. The caller holds the ID's lock, or no other thread has the ID. */
#ifndef SOFTHCA_RDMACM_ROUTE_H
#define SOFTHCA_RDMACM_ROUTE_H

#include "rdmacm/objects.h"

/** Chooses flow label and MTU. */
void path_choose(struct user_cm_id *id);

/** Sets the public path record. Returns 0 or -ENOMEM. */
int path_publish(struct user_cm_id *id);
/** Implements user_cm_event.deliver by path_publish(). */
bool path_deliver(struct user_cm_event *event);

/** Fills @path for packets to the peer. */
void path_fill(const struct user_cm_id *id, struct packet_path *path);

/** Returns a code: half of the option ACK_TIMEOUT, or CM_PACKET_LIFETIME. */
uint8_t path_lifetime(const struct user_cm_id *id);

#endif
