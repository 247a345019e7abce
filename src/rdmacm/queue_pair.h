/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP of an ID, and its connection as attributes of ibv_modify_qp(3). Only called inside calls of the program
 * (rdma-cm 2.2). Functions return 0 or a negative errno.
 *
 * The program shares id->qp: some destroy the QP and do not clear the pointer (fio), others set it. So the library uses
 * it only where the real library does, and only while the QP is alive.
 */
#ifndef SOFTHCA_RDMACM_QUEUE_PAIR_H
#define SOFTHCA_RDMACM_QUEUE_PAIR_H

#include "rdmacm/objects.h"

/** Fills in attributes for attr->qp_state (rdma_init_qp_attr(3)). The caller holds the lock of @id. */
int qp_attributes(struct user_cm_id *id, struct ibv_qp_attr *attr, int *mask);

/** Returns id->qp if it is alive, or NULL. */
struct ibv_qp *qp_of_id(const struct user_cm_id *id);

/**
 * Moves the QP to INIT, RTR and RTS. @responder_resources and @initiator_depth replace those of the connection unless
 * 0xff.
 */
int qp_connect(struct user_cm_id *id, uint8_t responder_resources, uint8_t initiator_depth);

/** Moves the QP to ERR. A no-op for an ID without a QP. */
void qp_fail(struct user_cm_id *id);

void ah_attributes(const struct user_cm_id *id, struct ibv_ah_attr *attr);

#endif
