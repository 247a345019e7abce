/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC and UC need only the data; UD, XRC and DC need data and address, in either order. The last setter finishes the
 * WQE.
 */
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

static void setter_refuse_sge_count(struct user_qp *qp, const char *call, uint64_t count)
{
	wr_refuse(qp, call, ENOMEM, RULE_SEND_SGE_COUNT, FIGURES(count, qp->cap.max_send_sge));
}

/* Bit 31 would turn the segment into inline data (mlx5-formats 1.5). */
static void setter_refuse_length(struct user_qp *qp, const char *call, uint32_t length)
{
	wr_refuse(qp, call, EINVAL, RULE_SGE_LENGTH, FIGURES(length, INT32_MAX));
}

void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	if (!wr_waits_for(qp, "ibv_wr_set_sge", WR_SETTER_DATA))
		return;
	if (length) {
		if (wqe_unlikely(length > INT32_MAX)) {
			setter_refuse_length(qp, "ibv_wr_set_sge", length);
			return;
		}
		/* A WQE of a QP without SGEs has no room for one. (-1 before RTS, when nothing is posted.) */
		if (wqe_unlikely(!qp->sq.max_gs)) {
			setter_refuse_sge_count(qp, "ibv_wr_set_sge", 1);
			return;
		}
		wqe_set_data(wqe_current(&qp->sq), qp->builder.offset, addr, length, lkey);
		qp->builder.offset += WQE_UNIT;
	}
	wr_was_set(qp, WR_SETTER_DATA);
}

void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe = wqe_current(&qp->sq);
	uint32_t offset = qp->builder.offset;

	if (!wr_waits_for(qp, "ibv_wr_set_sge_list", WR_SETTER_DATA))
		return;
	if (wqe_unlikely(num_sge > qp->cap.max_send_sge)) {
		setter_refuse_sge_count(qp, "ibv_wr_set_sge_list", num_sge);
		return;
	}
	for (size_t i = 0; i < num_sge; i++) {
		if (!sg_list[i].length)
			continue;
		if (wqe_unlikely(sg_list[i].length > INT32_MAX)) {
			setter_refuse_length(qp, "ibv_wr_set_sge_list", sg_list[i].length);
			return;
		}
		wqe_set_data(wqe, offset, sg_list[i].addr, sg_list[i].length, sg_list[i].lkey);
		offset += WQE_UNIT;
	}
	qp->builder.offset = offset;
	wr_was_set(qp, WR_SETTER_DATA);
}

static inline void setter_refuse_inline(struct user_qp *qp, const char *call, uint64_t length)
{
	wr_refuse(qp, call, ENOMEM, RULE_INLINE_LENGTH, FIGURES(length, qp->sq.max_inline));
}

/* Ends inline data with its header at builder.offset. Empty data has no segment (mlx5-formats 1.5). */
static inline void inline_was_set(struct user_qp *qp, uint32_t length)
{
	if (length) {
		wqe_set_inline_header(wqe_current(&qp->sq), qp->builder.offset, length);
		qp->builder.offset += wqe_round(sizeof(struct mlx5_wqe_inl_data_seg) + length);
	}
	wr_was_set(qp, WR_SETTER_DATA);
}

void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	if (!wr_waits_for(qp, "ibv_wr_set_inline_data", WR_SETTER_DATA))
		return;
	if (wqe_unlikely(length > qp->sq.max_inline)) {
		setter_refuse_inline(qp, "ibv_wr_set_inline_data", length);
		return;
	}
	if (length)
		wqe_copy(wqe_current(&qp->sq), qp->builder.offset + sizeof(struct mlx5_wqe_inl_data_seg), addr, length);
	inline_was_set(qp, length);
}

void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *buf_list)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe = wqe_current(&qp->sq);
	uint32_t data = qp->builder.offset + sizeof(struct mlx5_wqe_inl_data_seg);
	uint32_t total = 0;

	if (!wr_waits_for(qp, "ibv_wr_set_inline_data_list", WR_SETTER_DATA))
		return;
	for (size_t i = 0; i < num_buf; i++) {
		size_t length = buf_list[i].length;

		if (wqe_unlikely(length > qp->sq.max_inline - total)) {
			setter_refuse_inline(qp, "ibv_wr_set_inline_data_list", total + (uint64_t)length);
			return;
		}
		if (!length)
			continue;
		wqe_copy(wqe, data + total, buf_list[i].addr, length);
		total += length;
	}
	inline_was_set(qp, total);
}

void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	if (!wr_waits_for(qp, "ibv_wr_set_ud_addr", WR_SETTER_ADDRESS))
		return;
	wqe_set_av(wqe_current(&qp->sq), WQE_UNIT, &to_user_ah(ah)->av, remote_qpn, remote_qkey);
	wr_was_set(qp, WR_SETTER_ADDRESS);
}

void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	if (!wr_waits_for(qp, "ibv_wr_set_xrc_srqn", WR_SETTER_ADDRESS))
		return;
	wqe_set_xrc(wqe_current(&qp->sq), WQE_UNIT, remote_srqn);
	wr_was_set(qp, WR_SETTER_ADDRESS);
}
