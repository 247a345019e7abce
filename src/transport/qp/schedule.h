/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs to be run after the current packet (transport/run/run.h). */
#ifndef SOFTHCA_TRANSPORT_QP_SCHEDULE_H
#define SOFTHCA_TRANSPORT_QP_SCHEDULE_H

#include "transport/qp/qp.h"
#include "wire/run.h"

/** Schedules @qp because its responder has something to send, or room for it. The lock of @qp is held. */
void run_schedule(struct run *run, struct hca_qp *qp);
/** As run_schedule(), for the requester as well. */
void run_schedule_requester(struct run *run, struct hca_qp *qp);

#endif
