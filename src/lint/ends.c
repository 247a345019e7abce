/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the two ends of a connection within this host (the other process must have these warnings enabled, too).
 * With GIDs of different RoCE versions, or sequence numbers that do not match, requests on an adapter would get no
 * answer. Here GIDs of both versions lead to the same queue pair. The ends are compared at posting, because before that
 * one end may have the attributes of an earlier connection.
 */
#include "hca/gid.h"
#include "hca/hca.h"
#include "hca/port_mtu.h"
#include "lint/state.h"

struct lint_qp *lint_peer_of(const struct lint_qp *state)
{
	struct lint_qp *peer = state->end_attr.peer ? lint_qp_find(state->end_attr.peer) : NULL;

	return peer && peer->end_attr.peer == state->qp->base.handle ? peer : NULL;
}

/* Returns the RoCE version of the GID of @end, or 0. */
static uint32_t end_roce_version(const struct hca *hca, const struct lint_end *end)
{
	uint32_t index = end->sgid_index & ~LINT_SET;

	if (!(end->sgid_index & LINT_SET) || index >= hca->gid_count)
		return 0;
	return hca->gids[index].type == IBV_GID_TYPE_ROCE_V1 ? 1 : 2;
}

/* Returns the attributes of @state shown to other processes. */
static struct shm_end_attr end_shown(const struct lint_qp *state)
{
	const struct lint_end *end = &state->end_attr;

	return (struct shm_end_attr){
		.qpn = state->qp->base.handle,
		.peer = end->peer,
		.sq_psn = end->sq_psn,
		.rq_psn = end->rq_psn,
		.sgid_index = end->sgid_index,
		.roce_version = end_roce_version(hca_of_context(state->qp->base.context), end),
		.grants = end->grants,
	};
}

bool lint_other_end_find(const struct lint_qp *state, struct lint_other_end *other)
{
	const struct lint_qp *peer = lint_peer_of(state);
	struct shm_end_attr attr;

	if (!state->end_attr.peer)
		return false;
	if (peer)
		attr = end_shown(peer);
	else if (!end_find(state->end_attr.peer, state->qp->base.handle, &attr))
		return false;
	*other = (struct lint_other_end){
		.qp_num = attr.qpn,
		.rq_psn = attr.rq_psn,
		.sgid_index = attr.sgid_index,
		.roce_version = attr.roce_version,
		.grants = (uint8_t)attr.grants,
	};
	return true;
}

static void compare_gids(struct lint_qp *state, const struct lint_other_end *other, const char *call)
{
	uint32_t version = end_roce_version(hca_of_context(state->qp->base.context), &state->end_attr);

	if (version && other->roce_version && version != other->roce_version)
		lint_warn_qp(state, call, RULE_GID_TYPES_DIFFER,
			     FIGURES(state->end_attr.sgid_index & ~LINT_SET, version, other->qp_num,
				     other->sgid_index & ~LINT_SET, other->roce_version));
}

static void compare_psns(struct lint_qp *state, const struct lint_other_end *other, const char *call)
{
	uint32_t sends = state->end_attr.sq_psn, expects = other->rq_psn;

	if (sends & expects & LINT_SET && sends != expects)
		lint_warn_qp(state, call, RULE_PSN_DIFFERS,
			     FIGURES(sends & ~LINT_SET, other->qp_num, expects & ~LINT_SET));
}

/* IBTA 9.7.1: RC and UC check sequence numbers; datagrams do not. */
void lint_ends_look(struct lint_qp *state, const char *call)
{
	struct lint_other_end other;

	if ((state->qp->type != IBV_QPT_RC && state->qp->type != IBV_QPT_UC) || !lint_other_end_find(state, &other) ||
	    other.qp_num == state->qp->base.qp_num)
		return;
	compare_gids(state, &other, call);
	compare_psns(state, &other, call);
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
	if (mask & IBV_QP_AV) {
		end->sgid_index = attr->ah_attr.grh.sgid_index | LINT_SET;
		end->dgid = attr->ah_attr.grh.dgid;
	}
	if (mask & IBV_QP_RNR_RETRY)
		end->rnr_retry_zero = !attr->rnr_retry;
}

/* Shows the attributes of the queue pair to its peer's process. */
static void end_publish(const struct lint_qp *state, const struct ibv_qp_attr *attr, int mask)
{
	const struct shm_end_attr shown = end_shown(state);

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		lint_end_hide(state);
	else if (shown.peer && shown.sgid_index & LINT_SET)
		end_show(hca_of_context(state->qp->base.context), &state->end_attr.dgid, &shown);
}

void lint_end_hide(const struct lint_qp *state)
{
	end_hide(state->qp->base.handle);
}

/*
 * IBTA annex A17: a RoCE port has the MTU of its interface. Here longer packets are fragmented (rule 225). Within a
 * host no interface limits packets.
 */
static void check_mtu(struct lint_qp *state, const struct ibv_qp_attr *attr, int mask)
{
	const struct hca *hca = hca_of_context(state->qp->base.context);
	uint32_t most, bytes = 128u << attr->path_mtu;

	if (!(mask & IBV_QP_PATH_MTU) || !(mask & IBV_QP_AV) || attr->ah_attr.grh.sgid_index >= hca->gid_count ||
	    !end_is_on_other_host(hca, &attr->ah_attr.grh.dgid))
		return;
	most = port_gid_mtu(hca, attr->ah_attr.grh.sgid_index);
	if (bytes <= most)
		return;
	queue_lock(&lint.lock);
	lint_warn_qp(state, "ibv_modify_qp", RULE_PATH_MTU_TOO_LARGE,
		     FIGURES(bytes, attr->ah_attr.grh.sgid_index, most));
	queue_unlock(&lint.lock);
}

void lint_qp_modified(struct user_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	note_attributes(&state->end_attr, attr, mask);
	queue_unlock(&lint.lock);
	check_mtu(state, attr, mask);
	end_publish(state, attr, mask);
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
