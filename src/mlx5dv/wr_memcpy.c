/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_memcpy of mlx5dv_wr_post(3): a DMA request of the MMO class (mlx5-formats 1.14 and 4.9). */
#include "mlx5dv/wr_memcpy.h"

#include "core/limits.h"
#include "verbs/memory/memcpy_buffer.h"
#include "verbs/post/wqe_builder.h"

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
		WR_REFUSE(qp, "mlx5dv_wr_memcpy", EINVAL, RULE_MEMCPY_LENGTH, length, LIMIT_MAX_MEMCPY);
		return;
	}
	/* A control word of 0 where a data segment has its byte count. */
	wqe_set_data(wqe, OPAQUE_OFFSET, (uintptr_t)opaque->bytes, 0, opaque->lkey);
	wqe_set_data(wqe, SOURCE_OFFSET, src_addr, length, src_lkey);
	wqe_set_data(wqe, DESTINATION_OFFSET, dest_addr, length, dest_lkey);
	wr_finish(qp, MEMCPY_BYTES);
}
