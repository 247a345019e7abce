/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC_RECV QPs as the driver has them: no queue, no CQ, no user index; the device's QP is shared by all who opened it.
 * (verbs/qp/xrcd.c)
 */
#ifndef SOFTHCA_VERBS_QP_XRCD_H
#define SOFTHCA_VERBS_QP_XRCD_H

#include "verbs/object/objects.h"

/** Creates one; @attr was checked (verbs/qp/qp_check.h). Capabilities are returned as 0. errno and NULL on failure. */
struct ibv_qp *xrc_recv_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/** Closes @qp, and with the last opener destroys the QP in the device. Waits for events. Returns 0. */
int xrc_recv_destroy(struct user_qp *qp);

#endif
