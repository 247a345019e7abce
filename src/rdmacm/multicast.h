/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of an id (rdma_join_multicast(3)). */
#ifndef SOFTHCA_RDMACM_MULTICAST_H
#define SOFTHCA_RDMACM_MULTICAST_H

#include "rdmacm/objects.h"

/** Leaves all groups, with waiting for events to be acknowledged. No lock is held; the id is being destroyed. */
void multicast_leave_all(struct user_cm_id *id);

#endif
