/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_set_dc_addr(3) and _stream: where the open request of a DCI goes (mlx5-formats 1.6, 4.10). */
#include "mlx5dv/wr_dc.h"
#include "verbs/post/wqe_builder.h"

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
