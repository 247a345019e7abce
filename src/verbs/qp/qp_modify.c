/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device checks transitions and attributes. The driver then updates its own state: posting limits, and on RESET
 * rings and CQEs (mlx5-formats 4.2).
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/qp/destination.h"
#include "verbs/object/lint.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

static void reset_send_queue(struct user_qp *qp)
{
	struct send_queue *sq = &qp->sq;

	queue_lock(&sq->lock);
	sq->max_gs = -1;
	sq->head = 0;
	__atomic_store_n(&sq->tail, 0, __ATOMIC_RELAXED);
	sq->cur_post = 0;
	sq->fence_cache = 0;
	sq->oversized = false;
	sq_update_short(sq);
	qp->dbrec[MLX5_SND_DBR] = 0;
	wr_set_state(qp, IBV_QPS_RESET);
	queue_unlock(&sq->lock);
}

static void reset_receive_queue(struct user_qp *qp)
{
	struct receive_queue *rq = &qp->rq;

	queue_lock(&rq->lock);
	rq_set_limit(rq, -1);
	rq->head = 0;
	__atomic_store_n(&rq->tail, 0, __ATOMIC_RELAXED);
	qp->dbrec[MLX5_RCV_DBR] = 0;
	queue_unlock(&rq->lock);
}

static void queues_follow_state(struct user_qp *qp, enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		/*
		 * The device writes no more CQEs of this QP. Those not polled yet would name WRs that no longer exist.
		 */
		user_cq_purge_qp(qp);
		reset_send_queue(qp);
		reset_receive_queue(qp);
		break;
	case IBV_QPS_INIT:
		queue_lock(&qp->rq.lock);
		rq_set_limit(&qp->rq, qp->cap.max_recv_sge);
		queue_unlock(&qp->rq.lock);
		break;
	case IBV_QPS_RTR:
		qp->base.qp_num = hca_qp_number(qp->device); /* a DCT gets its number now */
		break;
	case IBV_QPS_RTS:
		queue_lock(&qp->sq.lock);
		qp->sq.max_gs = qp->cap.max_send_sge;
		sq_update_short(&qp->sq);
		wr_set_state(qp, IBV_QPS_RTS);
		queue_unlock(&qp->sq.lock);
		break;
	default:
		break;
	}
}

void user_qp_entered(struct user_qp *qp, enum ibv_qp_state state)
{
	/* An XRC_RECV QP has no queues. */
	if (qp->dbrec)
		queues_follow_state(qp, state);
	qp->base.state = state;
	LINT(qp_entered, qp, state);
}

void user_qp_disconnect(struct ibv_qp *base)
{
	hca_qp_disconnect(to_user_qp(base)->device);
	user_qp_entered(to_user_qp(base), IBV_QPS_ERR);
}

/* Size in programs built before rate_limit existed. */
#define ATTR_BYTES offsetof(struct ibv_qp_attr, rate_limit)

/* The kernel resolves the destination for these types: not for a DCT or UD. */
static bool qp_is_connected(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UC || qp->qp_type == IBV_QPT_XRC_SEND ||
	       qp->qp_type == IBV_QPT_XRC_RECV;
}

/* As in the kernel, the hop limit is that of the route and not that of @attr. Returns an errno value. */
static int qp_modify_resolved(struct user_qp *qp, const struct ibv_qp_attr *attr, int attr_mask)
{
	struct hca *hca = hca_of_context(qp->base.context);
	struct ibv_qp_attr resolved = {0};
	int error;

	if (!(attr_mask & IBV_QP_AV) || !qp_is_connected(&qp->base))
		return -hca_qp_modify(qp->device, attr, attr_mask);
	memcpy(&resolved, attr, attr_mask & IBV_QP_RATE_LIMIT ? sizeof(resolved) : ATTR_BYTES);
	error = destination_resolve(hca, "ibv_modify_qp", qp->base.qp_num, &attr->ah_attr,
				    &resolved.ah_attr.grh.hop_limit);
	return error ? error : -hca_qp_modify(qp->device, &resolved, attr_mask);
}

int softhca_ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int attr_mask)
{
	struct user_qp *qp = to_user_qp(base);
	int err;

	if (object_refused("ibv_modify_qp", NULL, base))
		return errno;
	/* Bits of later versions. The device refuses known bits that are wrong for the transition with EINVAL. */
	if (attr_mask & ~(2 * IBV_QP_RATE_LIMIT - 1))
		return refuse_on_qp(hca_of_context(base->context), "ibv_modify_qp", base->qp_num, EOPNOTSUPP,
				    RULE_QP_ATTR_MASK, FIGURES((uint32_t)attr_mask & ~(2 * IBV_QP_RATE_LIMIT - 1)));
	err = qp_modify_resolved(qp, attr, attr_mask);
	if (err)
		return err;
	LINT(qp_modified, qp, attr, attr_mask);
	if (attr_mask & IBV_QP_STATE)
		user_qp_entered(qp, attr->qp_state);
	return 0;
}

int softhca_ibv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	if (object_refused("ibv_modify_qp_rate_limit", NULL, qp))
		return errno;
	return refuse_on_qp(hca_of_context(qp->context), "ibv_modify_qp_rate_limit", qp->qp_num, EOPNOTSUPP,
			    RULE_QP_RATE_LIMIT, FIGURES(attr->rate_limit));
}
