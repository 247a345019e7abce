/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces WQEs that the drained queue has not started with NOPs. A NOP keeps index, length and completion bits of the
 * WQE; the opcode of its completion is stored in a side table (mlx5-formats 4.11).
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "verbs/post/wqe_builder.h"

static const char call[] = "mlx5dv_qp_cancel_posted_send_wrs";

enum { INDEX_MASK = 0x00ffff00 }; /* part of opmod_idx_opcode that a NOP keeps */

/*
 * Sets the opcode of the completion to that of the operation, unless the send queue stored one. Returns false for
 * opcodes that builders never create, including NOPs of an earlier cancellation.
 */
static bool completion_opcode(uint8_t opcode, uint8_t *wc_opcode)
{
	if (*wc_opcode == IBV_WC_DRIVER2)
		return true;
	switch (opcode) {
	case MLX5_OPCODE_RDMA_WRITE:
	case MLX5_OPCODE_RDMA_WRITE_IMM:
		*wc_opcode = IBV_WC_RDMA_WRITE;
		return true;
	case MLX5_OPCODE_SEND:
	case MLX5_OPCODE_SEND_IMM:
	case MLX5_OPCODE_SEND_INVAL:
		*wc_opcode = IBV_WC_SEND;
		return true;
	case MLX5_OPCODE_RDMA_READ:
		*wc_opcode = IBV_WC_RDMA_READ;
		return true;
	case MLX5_OPCODE_ATOMIC_CS:
		*wc_opcode = IBV_WC_COMP_SWAP;
		return true;
	case MLX5_OPCODE_ATOMIC_FA:
		*wc_opcode = IBV_WC_FETCH_ADD;
		return true;
	case WQE_OPCODE_ATOMIC_WRITE:
		*wc_opcode = IBV_WC_ATOMIC_WRITE;
		return true;
	case MLX5_OPCODE_TSO:
		*wc_opcode = IBV_WC_TSO;
		return true;
	case MLX5_OPCODE_UMR:
	case MLX5_OPCODE_SET_PSV:
	case MLX5_OPCODE_MMO:
		return true;
	default:
		return false;
	}
}

/* Returns 0 or -EINVAL. */
static int wqe_cancel(struct user_qp *qp, uint32_t index)
{
	struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe_at(&qp->sq, index), 0);
	uint32_t first = be32toh(ctrl->opmod_idx_opcode);
	uint8_t opcode = first & 0xff;

	if (!completion_opcode(opcode, &qp->sq.wc_opcode[index & (qp->sq.wqebb_count - 1)]))
		return -refuse_on_qp(hca_of_context(qp->base.context), call, qp->base.qp_num, EINVAL,
				     RULE_CANCEL_OPCODE, FIGURES(opcode, opcode));
	ctrl->opmod_idx_opcode = htobe32((first & INDEX_MASK) | MLX5_OPCODE_NOP);
	return 0;
}

/*
 * Replaces the WRs with @wr_id, from block @next on. Iterates by number, since raw WQEs may have a wrong length.
 * sq.lock is held. Returns their number, or -errno.
 */
static int wqes_cancel(struct user_qp *qp, uint16_t next, uint64_t wr_id)
{
	struct send_queue *sq = &qp->sq;
	uint32_t pending = (uint16_t)(sq->cur_post - next);
	uint32_t mask = sq->wqebb_count - 1;
	uint32_t number;
	int cancelled = 0;

	/* WQEs that the program wrote into the ring itself (mlx5dv_init_obj(3)) have no number and no wr_id. */
	if (!pending || pending > sq->wqebb_count)
		return 0;
	number = sq->wqe_head[next & mask];
	if (sq->head - number > sq->wqebb_count)
		return 0;
	for (; number != sq->head; number++) {
		uint32_t index = sq->wqe_post[number & mask];
		int error;

		if (sq->wr_id[index & mask] != wr_id)
			continue;
		error = wqe_cancel(qp, index);
		if (error)
			return error;
		cancelled++;
	}
	return cancelled;
}

int softhca_mlx5dv_qp_cancel_posted_send_wrs(struct mlx5dv_qp_ex *dv, uint64_t wr_id)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	uint16_t next;
	int result;

	if (object_refused(call, NULL, &qp->base))
		return -errno;
	if (hca_qp_drained(qp->device, &next))
		return -refuse_on_qp(hca_of_context(qp->base.context), call, qp->base.qp_num, EINVAL,
				     RULE_CANCEL_NOT_DRAINED, FIGURES(hca_qp_state(qp->device)));
	queue_lock(&qp->sq.lock);
	result = wqes_cancel(qp, next, wr_id);
	queue_unlock(&qp->sq.lock);
	return result;
}
