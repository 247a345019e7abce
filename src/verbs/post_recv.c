/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_post_recv(3) on a QP's own ring: mlx5-formats 2.1. */
#include <endian.h>
#include <errno.h>

#include "core/compiler.h"
#include "explain/explain.h"
#include "verbs/objects.h"
#include "verbs/ops.h"
#include "verbs/watched.h"

#define REFUSE_RECEIVE(qp, wr, errno_value, rule, ...)                                                                 \
	(EXPLAIN(hca_of_context((qp)->base.context),                                                                   \
		 (&(const struct explain_subject){.call = "ibv_post_recv",                                             \
						  .qpn = (qp)->base.qp_num,                                            \
						  .wr_id = (wr)->wr_id,                                                \
						  .error = (errno_value)}),                                            \
		 rule, __VA_ARGS__),                                                                                   \
	 (errno_value))

static __attribute__((cold, noinline)) int refuse_full(struct user_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->base.srq)
		return REFUSE_RECEIVE(qp, wr, ENOMEM, RULE_RECV_ON_SRQ,
				      hca_srq_number(((struct user_srq *)qp->base.srq)->device));
	if (qp->type == IBV_QPT_XRC_SEND || qp->type == IBV_QPT_XRC_RECV || qp->type == IBV_QPT_DRIVER)
		return REFUSE_RECEIVE(qp, wr, ENOMEM, RULE_QP_NO_QUEUE, qp->type);
	return REFUSE_RECEIVE(qp, wr, ENOMEM, RULE_RQ_FULL, qp->rq.count);
}

static __attribute__((cold, noinline)) int refuse_sge_count(struct user_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->rq.max_gs < 0)
		return REFUSE_RECEIVE(qp, wr, EINVAL, RULE_RECV_IN_RESET, hca_qp_state(qp->device));
	return REFUSE_RECEIVE(qp, wr, EINVAL, RULE_RECV_SGE_COUNT, (int64_t)wr->num_sge, qp->rq.max_gs);
}

/*
 * Writes the segments of @wr; empty SGEs are left out, a terminator ends the list if there is room for one.
 */
static inline int fill_entry(struct user_qp *qp, const struct ibv_recv_wr *wr, struct mlx5_wqe_data_seg *seg)
{
	int used = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (unlikely(sge->length > INT32_MAX))
			return REFUSE_RECEIVE(qp, wr, EINVAL, RULE_SGE_LENGTH, sge->length, INT32_MAX);
		mlx5dv_set_data_seg(&seg[used++], sge->length, sge->lkey, sge->addr);
	}
	if (used < qp->rq.max_gs)
		mlx5dv_set_data_seg(&seg[used], 0, MLX5_INVALID_LKEY, 0);
	return 0;
}

static inline int post_one(struct user_qp *qp, const struct ibv_recv_wr *wr, uint32_t posted)
{
	struct receive_queue *rq = &qp->rq;
	uint32_t number = rq->head + posted;
	uint32_t slot = number & (rq->count - 1);
	int err;

	if (unlikely(number - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) >= rq->count))
		return refuse_full(qp, wr);
	/* In RESET the limit is -1, and EINVAL the answer to any WR. */
	if (unlikely(wr->num_sge > rq->max_gs || rq->max_gs < 0))
		return refuse_sge_count(qp, wr);
	err = fill_entry(qp, wr, (void *)((char *)rq->buffer + ((size_t)slot << rq->shift)));
	if (unlikely(err))
		return err;
	rq->wr_id[slot] = wr->wr_id;
	return 0;
}

static uint32_t length_of(const struct ibv_recv_wr *wr)
{
	uint32_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

/* @watched: somebody wants to know what is posted (verbs/watched.h). */
SPECIALISED int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr, const bool watched)
{
	struct user_qp *qp = to_user_qp(base);
	uint32_t posted = 0;
	int err = 0;

	queue_lock(&qp->rq.lock);
	for (; wr; wr = wr->next, posted++) {
		err = post_one(qp, wr, posted);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		if (watched && lint_is_on())
			lint_receive_posting(qp, qp->rq.head + posted, wr);
		if (watched && timeline_is_on())
			timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_POST_RECEIVE, 0, qp->rq.head + posted),
				     base->qp_num, 0, length_of(wr), wr->wr_id);
	}
	if (posted) {
		qp->rq.head += posted;
		__atomic_store_n(&qp->dbrec[MLX5_RCV_DBR], htobe32(qp->rq.head & 0xffff), __ATOMIC_RELEASE);
	}
	queue_unlock(&qp->rq.lock);
	if (posted)
		hca_qp_recv_doorbell(qp->device);
	return err;
}

int softhca_ibv_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return post_recv(base, wr, bad_wr, false);
}

int post_recv_watched(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error;

	if (lint_is_on())
		lint_receives_posting();
	error = post_recv(qp, wr, bad_wr, true);
	if (lint_is_on())
		lint_receives_posted(to_user_qp(qp));
	return error;
}
