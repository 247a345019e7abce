/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READs and atomics beyond the number that the peer grants. Where both queue pairs are in this process each request is answered at
 * once, so the responder never finds one too many.
 */
#include "lint/state.h"

void lint_qp_modified(struct user_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		state->peer = state->asks = state->grants = 0;
	if (mask & IBV_QP_DEST_QPN)
		state->peer = attr->dest_qp_num;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		state->asks = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		state->grants = attr->max_dest_rd_atomic;
	queue_unlock(&lint.lock);
}

static bool takes_resource(const struct lint_send *send)
{
	return send->opcode == MLX5_OPCODE_RDMA_READ || send->opcode == MLX5_OPCODE_ATOMIC_CS ||
	       send->opcode == MLX5_OPCODE_ATOMIC_FA || send->opcode == WQE_OPCODE_ATOMIC_WRITE;
}

/* The queue pair of this process that is connected to that of @state; NULL: there is none. */
static const struct lint_qp *peer_of(const struct lint_qp *state)
{
	const struct lint_qp *peer = state->peer ? lint_qp_find(state->peer) : NULL;

	return peer && peer->peer == state->qp->base.handle ? peer : NULL;
}

void lint_depth_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call)
{
	const struct lint_qp *peer = takes_resource(send) ? peer_of(state) : NULL;
	uint32_t out = 0;

	/* Without any responder resource the first request is refused. */
	if (!peer || !peer->grants || state->asks <= peer->grants)
		return;
	for (uint32_t each = state->first; each != number + 1; each++) {
		const struct lint_send *other = &state->send[each & state->mask];

		out += takes_resource(other) && lint_send_is_new(state, other);
	}
	if (out > peer->grants)
		WARN_OF_QP(state, call, RULE_READS_NOT_GRANTED, out, peer->qp->base.qp_num, peer->grants, state->asks);
}
