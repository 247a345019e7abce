/* SPDX-License-Identifier: BSD-2-Clause */
/* Error states of QPs. */
#include "core/epoch.h"
#include "explain/explain.h"
#include "hca/grants.h"
#include "transport/qp/qp.h"
#include "transport/qp/record.h"

const struct qp_halves *qp_halves;

void qp_lost_completion(struct hca_qp *qp, const struct hca_cq *cq)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	/* IBTA C11-39. */
	qp_raise(qp, QP_EVENT_FATAL);
	qp_enter_error(qp, EXPLAIN(qp->hca, (&(const struct explain_subject){.qpn = qp->number}), RULE_CQ_FULL,
				   cq->number, cq->cqe_count));
}

void qp_enter_error(struct hca_qp *qp, uint64_t record)
{
	bool already = qp->state == IBV_QPS_ERR;

	qp_set_state(qp, IBV_QPS_ERR);
	if (unlikely(qp->granted))
		grants_revoke();
	/*
	 * Pairs with receive doorbells: entries of threads that did not see the new state are visible after this fence.
	 */
	if (!__libc_single_threaded)
		barrier_on_all_cpus();
	qp->error_record = record;
	requester_enter(qp, REQUESTER_FLUSH);
	qp_halves->flush_requester(qp);
	qp_halves->flush_responder(qp);
	/*
	 * IBTA 11.5.3: the QP takes no more receives from its SRQ. Raised from any state: UCX waits for it even for a
	 * QP that was never connected.
	 */
	if ((qp->srq || qp->domain) && !already)
		qp_raise(qp, QP_EVENT_LAST_WQE);
}

void qp_enter_send_error(struct hca_qp *qp, uint64_t record)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	qp_set_state(qp, IBV_QPS_SQE);
	qp->error_record = record;
	requester_enter(qp, REQUESTER_FLUSH);
	qp_halves->flush_requester(qp);
}
