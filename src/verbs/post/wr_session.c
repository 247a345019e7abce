/* SPDX-License-Identifier: BSD-2-Clause */
/* Critical region of ibv_wr_post(3): start, complete, abort; and the rare cases of the inline builder functions. */
#include "core/settings.h"
#include "verbs/post/inherited.h"
#include "verbs/object/observed.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

bool sq_has_room_for_blocks(struct send_queue *sq, uint32_t outstanding, uint32_t tail, uint32_t bytes)
{
	uint32_t first = outstanding ? sq->wqe_post[tail & (sq->wqebb_count - 1)] : sq->cur_post;

	if (bytes > sq->wqe_size && !sq->oversized) {
		sq->oversized = true;
		sq_update_short(sq);
	}
	return sq->cur_post + wqe_blocks(bytes) - first <= sq->wqebb_count;
}

void wr_refuse_full(struct user_qp *qp, const char *call, uint32_t bytes)
{
	wr_refuse(qp, call, ENOMEM, RULE_SQ_FULL, FIGURES(qp->sq.max_post, qp->sq.wqebb_count, wqe_blocks(bytes)));
}

void wr_refuse_length(struct user_qp *qp, uint32_t bytes)
{
	wr_refuse(qp, "ibv_wr_complete", ENOMEM, RULE_WQE_LENGTH, FIGURES(bytes, WQE_MAX_BYTES));
}

/* Latches EINVAL with the rule of the first missing setter. */
static void session_refuse_unfinished(struct user_qp *qp, uint64_t wr_id)
{
	const struct wr_builder *builder = &qp->builder;

	if (builder->setters_left & WR_SETTER_MKEY)
		wr_refuse(qp, "ibv_wr_complete", EINVAL, RULE_WR_SETTERS_MISSING,
			  FIGURES(wr_id, builder->mkey_setters_announced, builder->mkey_setters_called));
	/* ibv_wr_post(3), DATA transfer setters: one "should be called once after the WR builder". */
	else if (builder->setters_left & WR_SETTER_DATA)
		wr_refuse(qp, "ibv_wr_complete", EINVAL, RULE_WR_DATA_MISSING, FIGURES(wr_id));
	/* mlx5dv_wr_post(3), QP Specific setters: "mlx5dv_wr_set_dc_addr() must be called". */
	else if (qp->dc_type == MLX5DV_DCTYPE_DCI)
		wr_refuse(qp, "ibv_wr_complete", EINVAL, RULE_WR_DC_ADDRESS_MISSING, FIGURES(wr_id));
	/* ibv_wr_post(3), QP Specific setters: they "are mandatory for any operation listing a QP setter". */
	else
		wr_refuse(qp, "ibv_wr_complete", EINVAL, RULE_WR_ADDRESS_MISSING, FIGURES(wr_id, qp->type));
}

void wr_drop_unfinished(struct user_qp *qp)
{
	struct wr_builder *builder = &qp->builder;
	struct hca *hca = hca_of_context(qp->base.context);
	uint64_t wr_id = qp->sq.wr_id[qp->sq.cur_post & (qp->sq.wqebb_count - 1)];

	if (hca_settings(hca)->profile == PROFILE_MAN)
		session_refuse_unfinished(qp, wr_id);
	else
		EXPLAIN(hca,
			(&(const struct explain_subject){
				.call = "ibv_wr_complete", .qpn = qp->base.qp_num, .wr_id = wr_id}),
			RULE_WR_DROPPED, wr_id, builder->setters_left);
	builder->setters_left = 0;
	builder->mkey = NULL;
}

void wr_start(struct ibv_qp_ex *ex)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	queue_lock(&qp->sq.lock);
	lock_order_left(&qp->sq.lock);
	qp->builder.error = 0;
	qp->builder.count = 0;
	qp->builder.setters_left = 0;
	qp->builder.mkey = NULL;
	qp->builder.rollback_cur_post = qp->sq.cur_post;
	qp->builder.rollback_fence_cache = qp->sq.fence_cache;
}

/*
 * Drops the WRs built since the start. Their entries in the side tables are overwritten before a completion can name
 * them.
 */
static void session_roll_back(struct user_qp *qp)
{
	if (qp->dv_send_ops && dv_builders && qp->sq.cur_post != qp->builder.rollback_cur_post)
		dv_builders->chain_dropped(qp);
	LINT(chain_dropped, qp);
	qp->sq.cur_post = qp->builder.rollback_cur_post;
	sq_set_fence(&qp->sq, qp->builder.rollback_fence_cache);
	qp->builder.setters_left = 0;
	qp->builder.mkey = NULL;
	queue_unlock(&qp->sq.lock);
}

static inline void timeline_record_post(const struct user_qp *qp, uint64_t time, uint32_t number)
{
	const struct send_queue *sq = &qp->sq;
	uint32_t mask = sq->wqebb_count - 1, index = sq->wqe_post[number & mask];
	const struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe_at(sq, index), 0);

	timeline_put(time, TIMELINE_WHAT(TIMELINE_POST, be32toh(ctrl->opmod_idx_opcode), index), qp->base.qp_num, 0,
		     sq->wc_opcode[index & mask], sq->wr_id[index & mask]);
}

static __attribute__((noinline)) void timeline_record_posts(const struct user_qp *qp, uint64_t time, uint32_t count)
{
	for (uint32_t number = qp->sq.head - count; number != qp->sq.head; number++)
		timeline_record_post(qp, time, number);
}

void sends_posted(struct user_qp *qp, uint32_t count, const char *call)
{
	LINT(sends_posted, qp, count, call);
	/* Last, because the device's records must follow it in the timeline. */
	if (timeline_is_on()) {
		uint64_t now = timeline_now();

		timeline_begin_call(now);
		if (likely(count == 1))
			timeline_record_post(qp, now, qp->sq.head - 1);
		else
			timeline_record_posts(qp, now, count);
	}
}

/* Posts the chain, or drops it if an error is latched. @observed: see verbs/object/observed.h. */
static inline SPECIALISED int session_complete(struct ibv_qp_ex *ex, const bool observed)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wr_builder *builder = &qp->builder;
	int error;
	bool posted;

	if (wqe_unlikely(builder->setters_left))
		wr_drop_unfinished(qp);
	error = builder->error;
	if (wqe_unlikely(error)) {
		session_roll_back(qp);
		return error;
	}
	posted = builder->count != 0;
	if (posted) {
		qp->sq.head += builder->count;
		if (observed)
			sends_posted(qp, builder->count, "ibv_wr_complete");
		sq_publish(&qp->sq, qp->dbrec);
	}
	queue_unlock(&qp->sq.lock);
	/* Outside the lock: the doorbell executes requests, and other threads may post meanwhile. */
	if (posted)
		hca_qp_send_doorbell(qp->device);
	if (observed)
		timeline_end_call();
	return 0;
}

int wr_complete(struct ibv_qp_ex *ex)
{
	return session_complete(ex, false);
}

static int wr_complete_observed(struct ibv_qp_ex *ex)
{
	return session_complete(ex, true);
}

int wr_complete_refused(struct ibv_qp_ex *ex)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	session_roll_back(qp);
	if (qp->inherited)
		return refuse_inherited(qp, "ibv_wr_complete", 0);
	return refuse_on_qp(hca_of_context(qp->base.context), "ibv_wr_complete", qp->base.qp_num, EINVAL,
			    RULE_WR_BEFORE_RTS, FIGURES(hca_qp_state(qp->device)));
}

void wr_abort(struct ibv_qp_ex *ex)
{
	session_roll_back(to_user_qp_ex(ex));
}

void wr_set_state(struct user_qp *qp, enum ibv_qp_state state)
{
	if (!user_qp_has_builders(qp) || !qp->ex.wr_complete)
		return;
	/* mlx5-formats 4.2: refused before RTS. In the error state WRs are accepted and flushed. */
	if (state == IBV_QPS_RESET)
		qp->ex.wr_complete = wr_complete_refused;
	else if (state == IBV_QPS_RTS)
		qp->ex.wr_complete = data_path_is_observed() ? wr_complete_observed : wr_complete;
}
