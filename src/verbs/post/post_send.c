/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of WRs has one doorbell. Formats: mlx5-formats 1.4, 1.5; errno values and order of the checks: 4.2. As with a
 * real driver, an operation that the transport lacks is not refused: its WQE lacks segments, and the device completes
 * it with an error.
 */
#include "core/compiler.h"
#include "verbs/post/inherited.h"
#include "verbs/object/ops.h"
#include "verbs/post/send_operations.h"
#include "verbs/memory/signature.h"
#include "verbs/post/umr_segments.h"
#include "verbs/object/observed.h"
#include "verbs/post/wqe_builder.h"

static RARE int send_wr_refuse(struct user_qp *qp, const struct ibv_send_wr *wr, int error, enum explain_rule rule,
			       const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {
		.call = "ibv_post_send",
		.qpn = qp->base.qp_num,
		.wr_id = wr->wr_id,
		.error = error,
	};

	explain_make(hca_of_context(qp->base.context), &subject, rule, figures, count);
	return error;
}

static RARE int send_refuse_operation(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	/* The only opcode reserved for drivers; mlx5 drivers do not define it. */
	int err = wr->opcode == IBV_WR_DRIVER1 ? EOPNOTSUPP : EINVAL;

	if (qp->dc_type == MLX5DV_DCTYPE_DCI)
		return send_wr_refuse(qp, wr, err, RULE_SEND_ON_DCI, FIGURES(wr->opcode));
	return send_wr_refuse(qp, wr, err, RULE_SEND_OPCODE, FIGURES(wr->opcode, qp->type));
}

static RARE int send_refuse_full(struct user_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	if (qp->inherited)
		return refuse_inherited(qp, "ibv_post_send", wr->wr_id);
	if (qp->type == IBV_QPT_XRC_RECV || qp->dc_type == MLX5DV_DCTYPE_DCT)
		return send_wr_refuse(qp, wr, ENOMEM, RULE_QP_NO_QUEUE, FIGURES(qp->type));
	return send_wr_refuse(qp, wr, ENOMEM, RULE_SQ_FULL,
			      FIGURES(qp->sq.max_post, qp->sq.wqebb_count, wqe_blocks(bytes)));
}

static RARE int send_refuse_sge_count(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->inherited)
		return refuse_inherited(qp, "ibv_post_send", wr->wr_id);
	if (qp->sq.max_gs < 0)
		return send_wr_refuse(qp, wr, ENOMEM, RULE_SEND_BEFORE_RTS, FIGURES(hca_qp_state(qp->device)));
	return send_wr_refuse(qp, wr, ENOMEM, RULE_SEND_SGE_COUNT, FIGURES((int64_t)wr->num_sge, qp->sq.max_gs));
}

static RARE int send_refuse_sge_length(struct user_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	return send_wr_refuse(qp, wr, EINVAL, RULE_SGE_LENGTH, FIGURES(length, INT32_MAX));
}

static RARE int send_refuse_inline(struct user_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	return send_wr_refuse(qp, wr, ENOMEM, RULE_INLINE_LENGTH, FIGURES(length, qp->sq.max_inline));
}

/* Returns imm in the byte order of the WQE (mlx5-formats 1.2). */
static inline __be32 control_immediate(const struct ibv_send_wr *wr, const struct send_operation *operation)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return htobe32(wr->invalidate_rkey);
	case IBV_WR_BIND_MW:
		return htobe32(wr->bind_mw.mw->rkey);
	default:
		return wr->imm_data & (uint32_t)operation->immediate;
	}
}

/* Ignores lkeys. Advances @offset. Returns 0 or an errno value. */
static int send_put_inline(struct user_qp *qp, const struct ibv_send_wr *wr, struct wqe wqe, uint32_t *offset)
{
	uint32_t data = *offset + sizeof(struct mlx5_wqe_inl_data_seg);
	uint32_t total = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (wqe_unlikely(sge->length > qp->sq.max_inline - total))
			return send_refuse_inline(qp, wr, total + (uint64_t)sge->length);
		if (!sge->length)
			continue;
		wqe_copy(wqe, data + total, (const void *)(uintptr_t)sge->addr, sge->length);
		total += sge->length;
	}
	if (total) {
		wqe_set_inline_header(wqe, *offset, total);
		*offset += wqe_round(sizeof(struct mlx5_wqe_inl_data_seg) + total);
	}
	return 0;
}

/* Whatever the length of the SGE (mlx5-formats 1.5). */
#define ATOMIC_RESULT_BYTES sizeof(uint64_t)

static inline void segment_set_operands(void *place, const struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		segment_set_atomic(place, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
	else
		segment_set_atomic(place, wr->wr.atomic.compare_add, 0);
}

/* Writes data pointers, except empty ones. @length: used for each, or 0 for that of the SGE. */
static inline int send_put_pointers(struct user_qp *qp, const struct ibv_send_wr *wr, struct wqe wqe, uint32_t *offset,
				    uint32_t length)
{
	uint32_t at = *offset;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (wqe_unlikely(sge->length > INT32_MAX))
			return send_refuse_sge_length(qp, wr, sge->length);
		wqe_set_data(wqe, at, sge->addr, length ? length : sge->length, sge->lkey);
		at += WQE_UNIT;
	}
	*offset = at;
	return 0;
}

/* IBTA A19: 8 bytes, at an aligned address. */
static int check_atomic_write(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	if (wr->wr.rdma.remote_addr % sizeof(uint64_t))
		return send_wr_refuse(qp, wr, EINVAL, RULE_ATOMIC_WRITE_ALIGNMENT, FIGURES(wr->wr.rdma.remote_addr));
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length != sizeof(uint64_t))
		return send_wr_refuse(qp, wr, EINVAL, RULE_ATOMIC_WRITE_LENGTH, FIGURES(length));
	return 0;
}

/*
 * Writes everything after the control segment. @bytes: length of the header, on return that of the WQE. Returns 0 or an
 * errno value.
 */
static inline int send_put_segments(struct user_qp *qp, const struct ibv_send_wr *wr, enum send_form form,
				    struct wqe wqe, uint32_t *bytes)
{
	uint32_t forced_length = 0, at = WQE_UNIT;
	int err;

	if (wqe_unlikely(qp->type == IBV_QPT_XRC_SEND) && form < FORM_BIND) {
		wqe_set_xrc(wqe, at, wr->qp_type.xrc.remote_srqn);
		at += WQE_UNIT;
	}
	switch (form) {
	case FORM_RDMA:
		wqe_set_raddr(wqe, at, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		break;
	case FORM_ATOMIC:
		wqe_set_raddr(wqe, at, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		at += WQE_UNIT;
		segment_set_operands(wqe_unit(wqe, at), wr);
		forced_length = ATOMIC_RESULT_BYTES;
		break;
	case FORM_ATOMIC_WRITE:
		err = check_atomic_write(qp, wr);
		if (err)
			return err;
		wqe_set_raddr(wqe, at, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		break;
	case FORM_BIND:
		err = umr_bind_check(qp, "ibv_post_send", &wr->bind_mw.bind_info);
		if (err)
			return err;
		*bytes = umr_bind(wqe, wr->bind_mw.mw->type, qp->base.qp_num, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return 0;
	case FORM_INVALIDATE:
		block_state_forget(qp, wr->invalidate_rkey);
		*bytes = umr_invalidate(wqe);
		return 0;
	case FORM_DATAGRAM:
		wqe_set_av(wqe, at, &to_user_ah(wr->wr.ud.ah)->av, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		break;
	case FORM_INVALID:
	case FORM_PLAIN:
	case FORM_SEND_INVAL:
		break;
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		return send_put_inline(qp, wr, wqe, bytes);
	return send_put_pointers(qp, wr, wqe, bytes, forced_length);
}

/* Returns 0, or an errno value with the producer unmoved. */
static __attribute__((noinline)) int post_any(struct user_qp *qp, const struct ibv_send_wr *wr, uint32_t number)
{
	struct send_queue *sq = &qp->sq;
	const struct send_operation *operation;
	struct wqe wqe = wqe_current(sq);
	struct mlx5_wqe_ctrl_seg *control;
	uint32_t bytes, most;
	int err;

	if (wqe_unlikely((unsigned int)wr->opcode >= SEND_OPERATIONS))
		return send_refuse_operation(qp, wr);
	operation = &sq->operations[wr->opcode];
	if (wqe_unlikely(operation->form == FORM_INVALID))
		return send_refuse_operation(qp, wr);
	bytes = operation->header;
	most = operation->form >= FORM_BIND ? bytes : bytes + sq->max_payload;
	if (wqe_unlikely(!sq_has_room(sq, number, most)))
		return send_refuse_full(qp, wr, most);
	/* -1 before RTS: any WR fails with ENOMEM. */
	if (wqe_unlikely(wr->num_sge > sq->max_gs || sq->max_gs < 0))
		return send_refuse_sge_count(qp, wr);
	err = send_put_segments(qp, wr, operation->form, wqe, &bytes);
	if (wqe_unlikely(err))
		return err;
	if (wqe_unlikely(bytes > WQE_MAX_BYTES))
		return send_wr_refuse(qp, wr, ENOMEM, RULE_WQE_LENGTH, FIGURES(bytes, WQE_MAX_BYTES));
	control = sq_block(sq, sq->cur_post);
	wqe_set_word(control, 0, wqe_index(sq->cur_post) | operation->opcode);
	wqe_set_word(control, 1, sq->qpn | htobe32(bytes / WQE_UNIT));
	wqe_set_word(control, 2, sq_flags(sq, wr->send_flags, sq->fence_cache));
	wqe_set_word(control, 3, control_immediate(wr, operation));
	sq_enter(sq, sq->cur_post, number, wr->wr_id, operation->wc_opcode);
	sq->cur_post += wqe_blocks(bytes);
	sq_set_fence(sq, operation->fence);
	return 0;
}

/*
 * Builds a short WQE (struct send_queue) that passes all checks. Otherwise returns false without any change: post_any()
 * then builds it or explains the refusal.
 */
static inline SPECIALISED bool post_short(struct send_queue *sq, const struct ibv_send_wr *wr, uint32_t number)
{
	const struct send_operation *operation;
	const struct ibv_sge *sge = wr->sg_list;
	size_t opcode = (unsigned int)wr->opcode;
	uint32_t index = sq->cur_post;
	struct mlx5_wqe_ctrl_seg *control;
	uint64_t length_lkey;

	if (wqe_unlikely(opcode >= SEND_OPERATIONS))
		return false;
	operation = &sq->operations[opcode];
	if (wqe_unlikely(!operation->is_short || !sq->short_allowed || wr->num_sge != 1 ||
			 wr->send_flags & IBV_SEND_INLINE || !sge->length || sge->length > INT32_MAX ||
			 number - __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE) >= sq->max_post))
		return false;
	/* No wrap-around within a block: the ring ends at a block boundary. */
	control = sq_block(sq, index);
	wqe_set_word(control, 0, wqe_index(index) | operation->opcode);
	wqe_set_word(control, 1, sq->qpn | operation->short_units);
	wqe_set_word(control, 2, sq_flags(sq, wr->send_flags, 0));
	wqe_set_word(control, 3, wr->imm_data & (uint32_t)operation->immediate);
	if (likely(operation->form == FORM_RDMA)) {
		segment_set_raddr(control + 1, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		segment_set_data(control + 2, wr->sg_list);
	} else {
		length_lkey = sge_length_lkey(sge);
		if (operation->form == FORM_ATOMIC) {
			segment_set_raddr(control + 1, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
			segment_set_operands(control + 2, wr);
			length_lkey = ATOMIC_RESULT_BYTES << 32 | (uint32_t)length_lkey;
		} else if (operation->form == FORM_SEND_INVAL) {
			wqe_set_word(control, 3, htobe32(wr->invalidate_rkey));
		}
		segment_set_part((uint8_t *)control + operation->header, wr->sg_list, length_lkey);
	}
	sq_enter(sq, index, number, wr->wr_id, WC_OPCODE_FROM_CQE);
	sq->cur_post = index + 1;
	return true;
}

static RARE void send_wake_and_ring(struct user_qp *qp)
{
	queue_lock_wake(&qp->sq.lock);
	hca_qp_send_doorbell(qp->device);
}

/* Publishes the WRs before @number. Called with the lock, which it releases. */
static inline SPECIALISED void sends_publish(struct user_qp *qp, uint32_t number, const bool observed)
{
	uint32_t posted = number - qp->sq.head;

	qp->sq.head = number;
	if (observed)
		sends_posted(qp, posted, "ibv_post_send");
	sq_publish(&qp->sq, qp->dbrec);
	/* Outside the lock: the doorbell executes requests, and other threads may post meanwhile. */
	if (queue_unlock_wakes(&qp->sq.lock))
		send_wake_and_ring(qp);
	else
		hca_qp_send_doorbell(qp->device);
	if (observed)
		timeline_end_call();
}

/* @wr is not a short WQE. Called with the lock, which it releases. */
static inline SPECIALISED int post_rest(struct user_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
					uint32_t number, const bool observed)
{
	int err;

	do {
		err = post_any(qp, wr, number);
		if (wqe_unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		do {
			number++;
			wr = wr->next;
		} while (wr && post_short(&qp->sq, wr, number));
	} while (wr);
	/* ibv_post_send(3): the WRs before the failing one are posted. */
	if (likely(number != qp->sq.head))
		sends_publish(qp, number, observed);
	else
		queue_unlock(&qp->sq.lock);
	return err;
}

static __attribute__((noinline)) int post_rest_unobserved(struct user_qp *qp, struct ibv_send_wr *wr,
							  struct ibv_send_wr **bad_wr, uint32_t number)
{
	return post_rest(qp, wr, bad_wr, number, false);
}

/*
 * Posts a list, usually of short WQEs only. Called with the lock, which it releases. @observed: see
 * verbs/object/observed.h.
 */
static inline SPECIALISED int send_post_list(struct user_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
					     const bool observed)
{
	uint32_t number = qp->sq.head;

	do {
		if (wqe_unlikely(!post_short(&qp->sq, wr, number)))
			return observed ? post_rest(qp, wr, bad_wr, number, true)
					: post_rest_unobserved(qp, wr, bad_wr, number);
		number++;
		wr = wr->next;
	} while (wr);
	sends_publish(qp, number, observed);
	return 0;
}

/* Another thread holds the lock. */
static RARE int send_post_contended(struct user_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	queue_lock(&qp->sq.lock);
	return send_post_list(qp, wr, bad_wr, false);
}

/* Rare cases are in separate functions, so that this one saves no registers. */
int softhca_ibv_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct user_qp *qp = OPAQUE(to_user_qp(base));

	if (wqe_unlikely(!wr))
		return 0;
	if (wqe_unlikely(!queue_lock_at_once(&qp->sq.lock)))
		return send_post_contended(qp, wr, bad_wr);
	return send_post_list(qp, wr, bad_wr, false);
}

int post_send_observed(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct user_qp *qp = to_user_qp(base);

	if (!wr)
		return 0;
	queue_lock(&qp->sq.lock);
	return send_post_list(qp, wr, bad_wr, true);
}
