/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs that the run loop (transport/run/run.h) has to look after once the present packet has been handled. */
#ifndef SOFTHCA_TRANSPORT_QP_SCHEDULE_H
#define SOFTHCA_TRANSPORT_QP_SCHEDULE_H

#include "transport/qp/qp.h"
#include "wire/run.h"

/** Notes that the responder of @qp owes something, or has room to send it. Under @qp's lock. */
void run_schedule(struct run *run, struct hca_qp *qp);
/** The same, and that the requester may go on. */
void run_schedule_requester(struct run *run, struct hca_qp *qp);

#endif
