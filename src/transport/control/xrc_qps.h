/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs of XRC domains (queue/xrc.h). Locks as there. */
#ifndef SOFTHCA_TRANSPORT_CONTROL_XRC_QPS_H
#define SOFTHCA_TRANSPORT_CONTROL_XRC_QPS_H

#include "queue/xrc.h"

/** Makes the creator of a new XRC_RECV QP its first opener. Returns 0 or -ENOMEM. */
int xrc_qp_join(struct hca_qp *qp, struct hca_xrcd *xrcd, void *cookie);
/** Removes @qp, which no longer receives or holds a receive, from its domain. */
void xrc_qp_leave(struct hca_qp *qp);

#endif
