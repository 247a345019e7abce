/* SPDX-License-Identifier: BSD-2-Clause */
/* Warns of CQs without room for all completions, and of SRQs that are not armed again. */
#include "lint/state.h"

/* ---- what can complete ------------------------------------------------------------------------------------------ */

static void add_due(struct ibv_cq *cq, uint32_t *counted, uint32_t now)
{
	if (cq)
		to_user_cq(cq)->lint_due += now - *counted;
	*counted = now;
}

void lint_due_count(struct lint_qp *state)
{
	const struct receive_queue *rq = &state->qp->rq;

	add_due(state->qp->base.send_cq, &state->sends_due, state->signalled);
	add_due(state->qp->base.recv_cq, &state->receives_due,
		__atomic_load_n(&rq->head, __ATOMIC_RELAXED) - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE));
}

void lint_due_forget(struct lint_qp *state)
{
	add_due(state->qp->base.send_cq, &state->sends_due, 0);
	add_due(state->qp->base.recv_cq, &state->receives_due, 0);
}

/* Counts all posted requests: receives of an SRQ may complete on any CQ of its queue pairs. */
static void check_room(struct ibv_cq *base, const struct ibv_srq *srq, const char *call)
{
	struct user_cq *cq = base ? to_user_cq(base) : NULL;
	uint32_t due;

	if (!cq || cq->lint_warned || cq->exported)
		return;
	due = cq->lint_due + (srq ? ((const struct user_srq *)srq)->used : 0);
	if (due <= (uint32_t)base->cqe)
		return;
	cq->lint_warned = true;
	lint_warn_call(hca_of_context(base->context), call, RULE_CQ_TOO_SMALL, FIGURES(due, base->handle, base->cqe));
}

void lint_room_check(struct lint_qp *state, const char *call)
{
	const struct ibv_qp *qp = &state->qp->base;

	lint_due_count(state);
	if (qp->send_cq != qp->recv_cq)
		check_room(qp->send_cq, NULL, call);
	check_room(qp->recv_cq, qp->srq, call);
}

void lint_receives_posting(void)
{
	queue_lock(&lint.lock);
	lint_reads_tell();
	queue_unlock(&lint.lock);
}

void lint_receives_posted(struct user_qp *qp)
{
	if (!qp->lint)
		return;
	queue_lock(&lint.lock);
	lint_room_check(qp->lint, "ibv_post_recv");
	queue_unlock(&lint.lock);
}

/* ---- shared receive queues -------------------------------------------------------------------------------------- */

void lint_srq_armed(struct user_srq *srq, uint32_t limit)
{
	queue_lock(&lint.lock);
	srq->lint.limit = limit;
	srq->lint.raised = srq->lint.refilled = false;
	queue_unlock(&lint.lock);
}

/* From now on the SRQ raises no event when receives run short. */
void lint_srq_limit_reached(struct user_srq *srq)
{
	queue_lock(&lint.lock);
	srq->lint.raised = srq->lint.limit != 0;
	queue_unlock(&lint.lock);
}

void lint_srq_posting(struct user_srq *srq)
{
	queue_lock(&lint.lock);
	if (srq->lint.raised && srq->lint.refilled && srq->used < srq->lint.limit && !srq->lint.warned) {
		srq->lint.warned = true;
		lint_warn_call(hca_of_context(srq->base.context), "ibv_post_srq_recv", RULE_SRQ_NOT_ARMED,
			       FIGURES(srq->base.handle, srq->lint.limit));
	}
	queue_unlock(&lint.lock);
}

void lint_srq_posted(struct user_srq *srq)
{
	queue_lock(&lint.lock);
	srq->lint.refilled |= srq->lint.raised && srq->used >= srq->lint.limit;
	queue_unlock(&lint.lock);
}
