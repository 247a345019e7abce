/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC_RECV QPs on the driver's side: no queue, no CQ, no user index. All openers share the device's QP.
 * (verbs/qp/xrcd.c)
 */
#ifndef SOFTHCA_VERBS_QP_XRCD_H
#define SOFTHCA_VERBS_QP_XRCD_H

#include "verbs/object/objects.h"

/** @attr was checked (verbs/qp/qp_check.h). Returns the capabilities as 0. NULL with errno set on failure. */
struct ibv_qp *xrc_recv_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/** Closes @qp; the last opener destroys the QP in the device. Waits for events. Returns 0. */
int xrc_recv_destroy(struct user_qp *qp);

#endif
