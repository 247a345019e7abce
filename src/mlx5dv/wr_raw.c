/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_raw_wqe of mlx5dv_wr_post(3): a WQE that the program made. It goes into the ring as it is, but for the
 * index of its place (mlx5-formats 4.8); no QP of this library signs its WQEs, so the signature byte stays as it is,
 * too. Nothing else is looked at here: what is wrong with it, the device says in a completion.
 */
#include "mlx5dv/wr_raw.h"

#include "verbs/post/wqe_builder.h"

void dv_wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *bytes)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	struct mlx5_wqe_ctrl_seg ctrl, *placed;
	uint32_t size, opcode;
	struct wqe wqe;

	memcpy(&ctrl, bytes, sizeof(ctrl));
	size = (be32toh(ctrl.qpn_ds) & 0x3f) * WQE_UNIT;
	/* Without a length it still takes a place, in which the device finds it and refuses it. */
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
