/* SPDX-License-Identifier: BSD-2-Clause */
/* Draining send queues: state SQD, and MLX5DV_QP_CREATE_SIG_PIPELINING. */
#include "transport/qp/qp.h"
#include "transport/qp/record.h"
#include "transport/requester/requester.h"

void requester_check_drained(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	if (requester->state != REQUESTER_DRAINED || requester->first != requester->last || !qp->attr.sq_draining)
		return;
	qp->attr.sq_draining = 0;
	if (qp->attr.en_sqd_async_notify)
		qp_raise(qp, QP_EVENT_SQ_DRAINED);
}

bool requester_stops_at_signature_error(struct hca_qp *qp)
{
	if (!qp->stop_at_signature_error || !__atomic_load_n(&qp->requester.signature_error, __ATOMIC_ACQUIRE))
		return false;
	/* The WQE with the error completes; no later one begins (mlx5-formats 4.11 and 6, points 28 to 30). */
	__atomic_store_n(&qp->state, IBV_QPS_SQD, __ATOMIC_RELEASE);
	requester_enter(qp, REQUESTER_DRAINED);
	qp->attr.sq_draining = 1;
	qp->attr.en_sqd_async_notify = 1;
	requester_check_drained(qp);
	return true;
}
