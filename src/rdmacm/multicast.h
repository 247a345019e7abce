/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of an ID (rdma_join_multicast(3)). */
#ifndef SOFTHCA_RDMACM_MULTICAST_H
#define SOFTHCA_RDMACM_MULTICAST_H

#include "rdmacm/objects.h"

/**
 * Leaves all groups of an ID that is being destroyed, and waits until their events are acknowledged. The caller holds
 * no lock.
 */
void multicast_leave_all(struct user_cm_id *id);

#endif
