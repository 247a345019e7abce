/* SPDX-License-Identifier: BSD-2-Clause */
/* Delivery of events of the connection manager: the work done by rdma_get_cm_event(3). */
#ifndef SOFTHCA_RDMACM_DELIVER_H
#define SOFTHCA_RDMACM_DELIVER_H

#include "cm/hello.h"
#include "rdmacm/objects.h"

/** Implements user_cm_event.deliver for an event of the connection manager. */
bool deliver_from_manager(struct user_cm_event *event);

/** Reads the header of a REQ or SIDR_REQ (cm/hello.h). Pure; any thread. */
enum cm_hello request_addresses(const struct cm_message *message, struct cm_hello_addresses *addresses);

#endif
