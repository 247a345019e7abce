/* SPDX-License-Identifier: BSD-2-Clause */
/* Builders and setters without keys: raw WQEs, copies, addresses of DCIs. See mlx5dv/wr_simple.h. */
#include "mlx5dv/wr_simple.h"

#include <string.h>

#include "core/limits.h"
#include "verbs/memory/memcpy_buffer.h"
#include "verbs/post/wqe_builder.h"

/*
 * mlx5-formats 4.8: only the index changes. QPs of this library never sign their WQEs, so the signature byte stays as
 * well. The device reports other errors in a completion.
 */
void dv_wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *bytes)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	struct mlx5_wqe_ctrl_seg ctrl, *placed;
	uint32_t size, opcode;
	struct wqe wqe;

	memcpy(&ctrl, bytes, sizeof(ctrl));
	size = (be32toh(ctrl.qpn_ds) & 0x3f) * WQE_UNIT;
	/* Without a length the WQE still occupies a block, in which the device finds and refuses it. */
	if (!size)
		size = sizeof(ctrl);
	opcode = be32toh(ctrl.opmod_idx_opcode) & 0xff0000ff;
	if (!wr_begin(qp, "mlx5dv_wr_raw_wqe", opcode, 0, size, IBV_WC_DRIVER2, 0, &wqe))
		return;
	wqe_copy(wqe, 0, bytes, size);
	placed = wqe_unit(wqe, 0);
	placed->opmod_idx_opcode = htobe32(opcode | (qp->sq.cur_post & 0xffff) << 8);
	wr_advance(qp, size);
}

/* ---- copies: a DMA request of the MMO class (mlx5-formats 1.14 and 4.9) ---------------------------------------- */
enum {
	OPMOD_DMA = 1,
	OPAQUE_OFFSET = WQE_UNIT,
	SOURCE_OFFSET = 2 * WQE_UNIT,
	DESTINATION_OFFSET = 3 * WQE_UNIT,
	MEMCPY_BYTES = 4 * WQE_UNIT,
};

void dv_wr_memcpy(struct mlx5dv_qp_ex *dv, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey, uint64_t src_addr,
		  size_t length)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	const struct memcpy_buffer *opaque = qp->memcpy_buffer;
	struct wqe wqe;

	if (!wr_begin(qp, "mlx5dv_wr_memcpy", MLX5_OPCODE_MMO | OPMOD_DMA << 24, 0, MEMCPY_BYTES, IBV_WC_DRIVER3, 0,
		      &wqe))
		return;
	if (!length || length > LIMIT_MAX_MEMCPY) {
		wr_refuse(qp, "mlx5dv_wr_memcpy", EINVAL, RULE_MEMCPY_LENGTH, FIGURES(length, LIMIT_MAX_MEMCPY));
		return;
	}
	/* The control word, in place of the byte count of a data segment, is 0. */
	wqe_set_data(wqe, OPAQUE_OFFSET, (uintptr_t)opaque->bytes, 0, opaque->lkey);
	wqe_set_data(wqe, SOURCE_OFFSET, src_addr, length, src_lkey);
	wqe_set_data(wqe, DESTINATION_OFFSET, dest_addr, length, dest_lkey);
	wr_finish(qp, MEMCPY_BYTES);
}

/* ---- addresses of DCIs (mlx5-formats 1.6, 4.10) --------------------------------------------------------------- */
static inline void dc_set_address(struct mlx5dv_qp_ex *dv, const char *call, struct ibv_ah *ah, uint32_t remote_dctn,
				  uint64_t remote_dc_key, uint16_t stream_id)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct wqe wqe;

	if (!wr_waits_for(qp, call, WR_SETTER_ADDRESS))
		return;
	wqe = wqe_current(&qp->sq);
	wqe_set_dc_av(wqe, WQE_UNIT, &to_user_ah(ah)->av, remote_dctn, remote_dc_key);
	ctrl = wqe_unit(wqe, 0);
	ctrl->dci_stream_channel_id = htobe16(stream_id);
	wr_was_set(qp, WR_SETTER_ADDRESS);
}

void dv_wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key)
{
	dc_set_address(dv, "mlx5dv_wr_set_dc_addr", ah, remote_dctn, remote_dc_key, 0);
}

void dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key,
			      uint16_t stream_id)
{
	dc_set_address(dv, "mlx5dv_wr_set_dc_addr_stream", ah, remote_dctn, remote_dc_key, stream_id);
}
