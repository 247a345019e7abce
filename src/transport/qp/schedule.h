/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs that the run loop (transport/run/run.h) must run after the current packet. */
#ifndef SOFTHCA_TRANSPORT_QP_SCHEDULE_H
#define SOFTHCA_TRANSPORT_QP_SCHEDULE_H

#include "transport/qp/qp.h"
#include "wire/run.h"

/**
 * Schedules @qp in @run because its responder has something to send, or now has room to send it. The lock of @qp is
 * held.
 */
void run_schedule(struct run *run, struct hca_qp *qp);
/** As run_schedule(), for the requester as well. */
void run_schedule_requester(struct run *run, struct hca_qp *qp);

#endif
