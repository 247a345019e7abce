/* SPDX-License-Identifier: BSD-2-Clause */
/* A QP's own ring: mlx5-formats 2.1. */
#include <endian.h>
#include <errno.h>

#include "core/compiler.h"
#include "explain/explain.h"
#include "verbs/post/inherited.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/object/observed.h"
#include "verbs/post/wqe_builder.h"

static RARE int receive_wr_refuse(struct user_qp *qp, const struct ibv_recv_wr *wr, int error, enum explain_rule rule,
				  const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {
		.call = "ibv_post_recv",
		.qpn = qp->base.qp_num,
		.wr_id = wr->wr_id,
		.error = error,
	};

	explain_make(hca_of_context(qp->base.context), &subject, rule, figures, count);
	return error;
}

static RARE int receive_refuse_full(struct user_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->base.srq)
		return receive_wr_refuse(qp, wr, ENOMEM, RULE_RECV_ON_SRQ,
					 FIGURES(hca_srq_number(((struct user_srq *)qp->base.srq)->device)));
	if (qp->type == IBV_QPT_XRC_SEND || qp->type == IBV_QPT_XRC_RECV || qp->type == IBV_QPT_DRIVER)
		return receive_wr_refuse(qp, wr, ENOMEM, RULE_QP_NO_QUEUE, FIGURES(qp->type));
	return receive_wr_refuse(qp, wr, ENOMEM, RULE_RQ_FULL, FIGURES(qp->rq.count));
}

static RARE int receive_refuse_sge_count(struct user_qp *qp, const struct ibv_recv_wr *wr)
{
	if (qp->rq.max_gs < 0)
		return receive_wr_refuse(qp, wr, EINVAL, RULE_RECV_IN_RESET, FIGURES(hca_qp_state(qp->device)));
	return receive_wr_refuse(qp, wr, EINVAL, RULE_RECV_SGE_COUNT, FIGURES((int64_t)wr->num_sge, qp->rq.max_gs));
}

/*
 * Writes the entry of @wr, number @number, without empty segments, and a terminator if there is room for one. Returns
 * false if it may not be posted.
 */
static inline SPECIALISED bool receive_post_one(struct receive_queue *rq, const struct ibv_recv_wr *wr, uint32_t number)
{
	uint32_t slot = number & (rq->count - 1);
	int left = wr->num_sge, room = rq->max_gs;
	const struct ibv_sge *sge;
	struct mlx5_wqe_data_seg *seg;

	if (unlikely(number - __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE) >= rq->room || left > room))
		return false;
	/* Unused until the entry is posted. */
	rq->wr_id[slot] = wr->wr_id;
	sge = wr->sg_list;
	seg = (void *)((char *)rq->buffer + ((size_t)slot << rq->shift));
	for (; left > 0; left--, sge++) {
		if (unlikely((int32_t)sge->length <= 0)) {
			if (!sge->length)
				continue;
			return false;
		}
		segment_set_data(seg++, sge);
		room--;
	}
	if (room > 0)
		segment_set_end(seg);
	return true;
}

/* Explains why receive_post_one() failed. Returns an errno value. */
static RARE int receive_refuse(struct user_qp *qp, const struct ibv_recv_wr *wr, uint32_t number)
{
	uint32_t length = 0;

	if (qp->inherited)
		return refuse_inherited(qp, "ibv_post_recv", wr->wr_id);
	if (number - __atomic_load_n(&qp->rq.tail, __ATOMIC_ACQUIRE) >= qp->rq.count)
		return receive_refuse_full(qp, wr);
	/* -1 in RESET: any WR fails with EINVAL. */
	if (wr->num_sge > qp->rq.max_gs || qp->rq.max_gs < 0)
		return receive_refuse_sge_count(qp, wr);
	for (int i = 0; i < wr->num_sge && length <= INT32_MAX; i++)
		length = wr->sg_list[i].length;
	return receive_wr_refuse(qp, wr, EINVAL, RULE_SGE_LENGTH, FIGURES(length, INT32_MAX));
}

static RARE void receive_wake_and_ring(struct user_qp *qp)
{
	queue_lock_wake(&qp->rq.lock);
	hca_qp_recv_doorbell(qp->device);
}

/* Publishes the WRs before @number. Called with the lock, which it releases. */
static inline SPECIALISED void receives_publish(struct user_qp *qp, uint32_t number)
{
	qp->rq.head = number;
	__atomic_store_n(&qp->dbrec[MLX5_RCV_DBR], htobe32(number & 0xffff), __ATOMIC_RELEASE);
	if (queue_unlock_wakes(&qp->rq.lock))
		receive_wake_and_ring(qp);
	else
		hca_qp_recv_doorbell(qp->device);
}

static RARE int receives_end_refused(struct user_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
				     uint32_t number)
{
	int err = receive_refuse(qp, wr, number);

	*bad_wr = wr;
	if (number != qp->rq.head)
		receives_publish(qp, number);
	else
		queue_unlock(&qp->rq.lock);
	return err;
}

static uint32_t receive_length(const struct ibv_recv_wr *wr)
{
	uint32_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

/* Called with the lock, which it releases. @observed: see verbs/object/observed.h. */
static inline SPECIALISED int receive_post_list(struct user_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr,
						const bool observed)
{
	uint32_t number = qp->rq.head;

	do {
		if (unlikely(!receive_post_one(&qp->rq, wr, number)))
			return receives_end_refused(qp, wr, bad_wr, number);
		if (observed)
			LINT(receive_posting, qp, number, wr);
		if (observed && timeline_is_on())
			timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_POST_RECEIVE, 0, number), qp->base.qp_num,
				     0, receive_length(wr), wr->wr_id);
		number++;
		wr = wr->next;
	} while (wr);
	receives_publish(qp, number);
	return 0;
}

/* Another thread holds the lock. */
static RARE int receive_post_contended(struct user_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	queue_lock(&qp->rq.lock);
	return receive_post_list(qp, wr, bad_wr, false);
}

/* Rare cases are in separate functions, so that this one saves no registers. */
int softhca_ibv_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct user_qp *qp = OPAQUE(to_user_qp(base));

	if (unlikely(!wr))
		return 0;
	if (unlikely(!queue_lock_at_once(&qp->rq.lock)))
		return receive_post_contended(qp, wr, bad_wr);
	return receive_post_list(qp, wr, bad_wr, false);
}

static int receive_post_list_observed(struct user_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (!wr)
		return 0;
	queue_lock(&qp->rq.lock);
	return receive_post_list(qp, wr, bad_wr, true);
}

int post_recv_observed(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int error;

	LINT(receives_posting);
	error = receive_post_list_observed(to_user_qp(qp), wr, bad_wr);
	LINT(receives_posted, to_user_qp(qp));
	return error;
}
