/* SPDX-License-Identifier: BSD-2-Clause */
/* The path of an id: what a route has besides the addresses. The caller holds the id's lock, or has it alone. */
#ifndef SOFTHCA_RDMACM_ROUTE_H
#define SOFTHCA_RDMACM_ROUTE_H

#include "rdmacm/objects.h"

/** Chooses flow label and MTU for the addresses of @id. */
void path_choose(struct user_cm_id *id);

/** Makes the path record of the public structure. 0 or -ENOMEM. */
int path_publish(struct user_cm_id *id);
/** Implements user_cm_event.deliver with path_publish(). */
bool path_deliver(struct user_cm_event *event);

/** The path to the peer as packets have it. */
void path_fill(const struct user_cm_id *id, struct packet_path *path);

/** Lifetime of packets as a code: half of the option ACK_TIMEOUT, or the setting CM_PACKET_LIFETIME. */
uint8_t path_lifetime(const struct user_cm_id *id);

#endif
