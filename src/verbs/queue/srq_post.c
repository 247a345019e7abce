/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_post_srq_recv(3). */
#include <errno.h>

#include "core/compiler.h"
#include "observe/timeline.h"
#include "explain/explain.h"
#include "verbs/object/lint.h"
#include "verbs/object/ops.h"
#include "verbs/queue/srq.h"

/* Unlike in a receive queue, SGEs of length 0 are kept (mlx5-formats 2.2). */
static void srq_write_entry(const struct user_srq *srq, const struct ibv_recv_wr *wr)
{
	struct mlx5_wqe_data_seg *seg = (struct mlx5_wqe_data_seg *)(user_srq_entry(srq, srq->head) + 1);
	uint32_t count = wr->num_sge;

	for (uint32_t i = 0; i < count; i++)
		mlx5dv_set_data_seg(&seg[i], wr->sg_list[i].length, wr->sg_list[i].lkey, wr->sg_list[i].addr);
	if (count < srq->max_sge)
		mlx5dv_set_data_seg(&seg[count], 0, MLX5_INVALID_LKEY, 0);
}

/* Returns the length of the first SGE above INT32_MAX, or 0: bit 31 means inline data (mlx5-formats 1.5). */
static uint32_t oversized_sge(const struct ibv_recv_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++)
		if (wr->sg_list[i].length > INT32_MAX)
			return wr->sg_list[i].length;
	return 0;
}

/* The SRQ lock is held. Returns an errno value. */
static int srq_post_check(const struct user_srq *srq, const struct ibv_recv_wr *wr)
{
	struct hca *hca = hca_of_context(srq->base.context);
	uint32_t length;

	/* As unsigned, a negative number exceeds any limit. */
	if ((uint32_t)wr->num_sge > srq->max_sge)
		return REFUSE(hca, "ibv_post_srq_recv", EINVAL, RULE_SRQ_SGES, wr->num_sge, srq->max_sge, wr->wr_id);
	length = oversized_sge(wr);
	if (length)
		return REFUSE(hca, "ibv_post_srq_recv", EINVAL, RULE_SGE_LENGTH, length, INT32_MAX);
	if (srq->used >= srq->max_wr)
		return REFUSE(hca, "ibv_post_srq_recv", ENOMEM, RULE_SRQ_FULL, srq->max_wr, wr->wr_id);
	return 0;
}

/* @observed: see verbs/object/observed.h. */
static inline SPECIALISED int srq_post_list(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
					    const bool observed)
{
	struct user_srq *srq = to_user_srq(base);
	uint16_t first;
	int error = 0;

	queue_lock(&srq->lock);
	first = srq->counter;
	for (; wr; wr = wr->next) {
		error = srq_post_check(srq, wr);
		if (error) {
			*bad_wr = wr;
			break;
		}
		srq->wr_id[srq->head] = wr->wr_id;
		srq_write_entry(srq, wr);
		if (observed)
			LINT(srq_receive_posting, srq, srq->head, wr);
		if (observed && timeline_is_on())
			timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_POST_SRQ, 0, srq->head), srq->base.handle,
				     0, 0, wr->wr_id);
		srq->head = srq_next(srq, srq->head);
		srq->used++;
		srq->counter++;
	}
	/* Receives posted before the bad one stay posted. */
	if (srq->counter != first)
		__atomic_store_n(srq->dbrec, htobe32(srq->counter), __ATOMIC_RELEASE);
	queue_unlock(&srq->lock);
	return error;
}

int softhca_ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return srq_post_list(srq, wr, bad_wr, false);
}

int post_srq_recv_observed(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error;

	LINT(receives_posting);
	LINT(srq_posting, to_user_srq(srq));
	error = srq_post_list(srq, wr, bad_wr, true);
	LINT(srq_posted, to_user_srq(srq));
	return error;
}
