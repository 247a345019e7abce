/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the two ends of a connection if both queue pairs are in this process. With GIDs of different RoCE versions,
 * or sequence numbers that do not match, requests on an adapter would get no answer. Here GIDs of either version lead
 * to the same queue pair. The ends are compared when a request is posted, because before that one end may still have
 * the attributes of an earlier connection.
 */
#include "hca/gid.h"
#include "hca/hca.h"
#include "lint/state.h"

struct lint_qp *lint_peer_of(const struct lint_qp *state)
{
	struct lint_qp *peer = state->end_attr.peer ? lint_qp_find(state->end_attr.peer) : NULL;

	return peer && peer->end_attr.peer == state->qp->base.handle ? peer : NULL;
}

/* Returns the RoCE version of GID @index of @hca. */
static uint32_t roce_version(const struct hca *hca, uint32_t index)
{
	return hca->gids[index].type == IBV_GID_TYPE_ROCE_V1 ? 1 : 2;
}

static void compare_gids(struct lint_qp *state, const struct lint_qp *peer, const char *call)
{
	const struct hca *own = hca_of_context(state->qp->base.context);
	const struct hca *other = hca_of_context(peer->qp->base.context);
	uint32_t own_index = state->end_attr.sgid_index & ~LINT_SET;
	uint32_t other_index = peer->end_attr.sgid_index & ~LINT_SET;

	if (!(state->end_attr.sgid_index & peer->end_attr.sgid_index & LINT_SET) || own_index >= own->gid_count ||
	    other_index >= other->gid_count)
		return;
	if (roce_version(own, own_index) != roce_version(other, other_index))
		lint_warn_qp(state, call, RULE_GID_TYPES_DIFFER,
			     FIGURES(own_index, roce_version(own, own_index), peer->qp->base.qp_num, other_index,
				     roce_version(other, other_index)));
}

static void compare_psns(struct lint_qp *state, const struct lint_qp *peer, const char *call)
{
	uint32_t sends = state->end_attr.sq_psn, expects = peer->end_attr.rq_psn;

	if (sends & expects & LINT_SET && sends != expects)
		lint_warn_qp(state, call, RULE_PSN_DIFFERS,
			     FIGURES(sends & ~LINT_SET, peer->qp->base.qp_num, expects & ~LINT_SET));
}

/* IBTA 9.7.1: RC and UC check sequence numbers; datagrams do not. */
void lint_ends_look(struct lint_qp *state, const char *call)
{
	const struct lint_qp *peer = lint_peer_of(state);

	if (!peer || peer == state || (state->qp->type != IBV_QPT_RC && state->qp->type != IBV_QPT_UC))
		return;
	compare_gids(state, peer, call);
	compare_psns(state, peer, call);
}

static uint32_t set_psn(uint32_t psn)
{
	return (psn & 0xffffff) | LINT_SET;
}

static void note_attributes(struct lint_end *end, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		*end = (struct lint_end){0};
	if (mask & IBV_QP_DEST_QPN)
		end->peer = attr->dest_qp_num;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		end->asks = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		end->grants = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_RQ_PSN)
		end->rq_psn = set_psn(attr->rq_psn);
	if (mask & IBV_QP_SQ_PSN)
		end->sq_psn = set_psn(attr->sq_psn);
	if (mask & IBV_QP_AV)
		end->sgid_index = attr->ah_attr.grh.sgid_index | LINT_SET;
	if (mask & IBV_QP_RNR_RETRY)
		end->rnr_retry_zero = !attr->rnr_retry;
}

void lint_qp_modified(struct user_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	note_attributes(&state->end_attr, attr, mask);
	queue_unlock(&lint.lock);
}

void lint_on_demand_look(struct lint_qp *state, const struct lint_send *send, const char *call)
{
	const struct user_mr *mr;

	if (!state->end_attr.rnr_retry_zero || !send->remote_length || !lint_peer_of(state))
		return;
	mr = lint_mr_find(send->rkey);
	if (mr && mr->access & IBV_ACCESS_ON_DEMAND)
		lint_warn_qp(state, call, RULE_RNR_RETRY_ZERO, FIGURES(send->rkey));
}
