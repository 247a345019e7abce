/* SPDX-License-Identifier: BSD-2-Clause */
/* Warns of objects that leak, are destroyed while in use, or have unacknowledged events. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/hca.h"
#include "lint/state.h"

void lint_context_closing(struct ibv_context *context)
{
	uint32_t counts[OBJECT_KIND_COUNT];

	objects_count(context, counts);
	for (int kind = 0; kind < OBJECT_KIND_COUNT; kind++)
		if (kind != OBJECT_CONTEXT && counts[kind])
			lint_warn_call(hca_of_context(context), "ibv_close_device", RULE_LEAKED_OBJECTS,
				       FIGURES(counts[kind], object_kind_figure(kind)));
}

void lint_events_wait(struct ibv_context *context, const char *call, const char *kind, uint32_t events)
{
	uint64_t name = 0;

	memcpy(&name, kind, strnlen(kind, sizeof(name)));
	/* An id of rdma_cm(7) may have no device yet. */
	lint_warn_call(context ? hca_of_context(context) : first_device(), call, RULE_EVENTS_UNACKNOWLEDGED,
		       FIGURES(name, events));
}

void lint_events_overacknowledged(struct user_cq *cq, uint32_t excess)
{
	lint_warn_call(hca_of_context(cq->base.context), "ibv_ack_cq_events", RULE_EVENTS_OVERACKNOWLEDGED,
		       FIGURES(excess, cq->base.handle));
}

void lint_ah_created(struct ibv_context *context, const struct ibv_ah_attr *attr)
{
	const union ibv_gid *to = &attr->grh.dgid;

	if (!attr->grh.hop_limit)
		lint_warn_call(hca_of_context(context), "ibv_create_ah", RULE_HOP_LIMIT_ZERO,
			       FIGURES(be64toh(to->global.subnet_prefix), be64toh(to->global.interface_id)));
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------ */

/* Starts watching a queue pair if it has a send queue and memory suffices. */
void lint_qp_created(struct user_qp *qp)
{
	uint32_t count = qp->sq.wqebb_count;
	struct lint_qp *state;

	if (!count)
		return;
	state = calloc(1, sizeof(*state));
	if (!state)
		return;
	state->send = calloc(count, sizeof(*state->send));
	if (!state->send) {
		free(state);
		return;
	}
	state->qp = qp;
	state->mask = count - 1;
	qp->lint = state;
	queue_lock(&lint.lock);
	lint_qp_add(state);
	queue_unlock(&lint.lock);
}

static uint32_t open_sends(const struct lint_qp *state)
{
	uint32_t count = 0;

	for (uint32_t number = state->first; number != state->end; number++)
		count += lint_send_is_open(state, number);
	return count;
}

/* Requests continue in these states; in others an adapter has ended or discarded them. */
static bool sends_go_on(const struct lint_qp *state)
{
	enum ibv_qp_state now = hca_qp_state(state->qp->device);

	return now == IBV_QPS_RTS || now == IBV_QPS_SQD;
}

/* Warns if this thread is between ibv_start_poll() and ibv_end_poll() on @base. The lock is held. */
static void check_polling(struct lint_qp *state, struct ibv_cq *base)
{
	const struct user_cq *cq = base ? to_user_cq(base) : NULL;

	if (cq && cq->polling && cq->lint_poller == gettid())
		lint_warn_qp(state, "ibv_destroy_qp", RULE_DESTROYED_IN_POLL, FIGURES(base->handle));
}

void lint_qp_destroying(struct user_qp *qp)
{
	struct lint_qp *state = qp->lint;
	uint32_t abandoned;

	if (!state)
		return;
	queue_lock(&lint.lock);
	lint_reads_tell();
	lint_receives_complete(state);
	check_polling(state, qp->base.send_cq);
	check_polling(state, qp->base.recv_cq);
	if (!sends_go_on(state)) {
		queue_unlock(&lint.lock);
		return;
	}
	lint_sends_complete(state);
	abandoned = open_sends(state);
	if (abandoned)
		lint_warn_qp(state, "ibv_destroy_qp", RULE_SENDS_ABANDONED,
			     FIGURES(hca_qp_state(qp->device), abandoned));
	queue_unlock(&lint.lock);
}

void lint_qp_destroyed(struct user_qp *qp)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	lint_end_hide(state);
	queue_lock(&lint.lock);
	lint_qp_remove(state);
	state->first = state->end;
	lint.binds -= state->binds;
	state->binds = 0;
	lint_due_forget(state);
	lint_receives_end(state);
	queue_unlock(&lint.lock);
	qp->lint = NULL;
	free(state->send);
	free(state);
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static bool send_names(const struct lint_send *send, uint32_t lkey)
{
	for (uint32_t i = 0; i < send->pieces; i++)
		if (send->piece[i].lkey == lkey)
			return true;
	return false;
}

/* Counts the pending send requests that name @lkey. */
static uint32_t sends_naming(struct lint_qp *state, uint32_t lkey)
{
	uint32_t count = 0;

	lint_sends_complete(state);
	for (uint32_t number = state->first; number != state->end; number++)
		count += lint_send_is_open(state, number) && send_names(&state->send[number & state->mask], lkey);
	return count;
}

void lint_mr_registered(struct user_mr *mr)
{
	queue_lock(&lint.lock);
	lint_mr_add(mr);
	lint_receive_region_registered(mr);
	queue_unlock(&lint.lock);
}

void lint_mr_deregistering(struct user_mr *mr)
{
	uint32_t count = 0;

	queue_lock(&lint.lock);
	lint_reads_tell();
	lint_receive_region_gone(mr);
	lint_mr_remove(mr);
	for (int i = 0; i < LINT_BUCKETS; i++)
		for (struct lint_qp *state = lint.qps[i]; state; state = state->next)
			if (state->first != state->end && sends_go_on(state))
				count += sends_naming(state, mr->base.lkey);
	if (count)
		lint_warn_call(hca_of_context(mr->base.context), "ibv_dereg_mr", RULE_REGION_IN_USE,
			       FIGURES(mr->base.lkey, count));
	queue_unlock(&lint.lock);
}
