/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP of an id, and what the communication manager knows of its connection as attributes of ibv_modify_qp(3). On
 * threads of the program, inside its calls only (rdma-cm 2.2). Functions return 0 or a negative errno.
 *
 * id->qp is the program's as much as ours: some destroy it themselves and leave the pointer (fio), some set it. So it
 * is used only where the real library does, and only while it is alive.
 */
#ifndef SOFTHCA_RDMACM_QUEUE_PAIR_H
#define SOFTHCA_RDMACM_QUEUE_PAIR_H

#include "rdmacm/objects.h"

/** Attributes and mask for attr->qp_state (rdma_init_qp_attr(3)). The lock of @id is held. */
int qp_attributes(struct user_cm_id *id, struct ibv_qp_attr *attr, int *mask);

/** id->qp if it is alive, else NULL. */
struct ibv_qp *qp_of_id(const struct user_cm_id *id);

/** INIT, RTR, RTS with the peer's numbers. 0xff for either number: what the connection says. */
int qp_connect(struct user_cm_id *id, uint8_t responder_resources, uint8_t initiator_depth);

/** To ERR, if there is one. */
void qp_fail(struct user_cm_id *id);

/** The address of the peer, for AHs and events. */
void ah_attributes(const struct user_cm_id *id, struct ibv_ah_attr *attr);

#endif
