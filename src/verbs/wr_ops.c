/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of ibv_wr_post(3): each opens a WQE and writes what stands before the data. Those without
 * data are whole at once; the others become whole in wr_setters.c.
 */
#include "verbs/umr_segments.h"
#include "verbs/wqe_builder.h"
#include "verbs/wr.h"

enum {
	SEND_BYTES = WQE_UNIT,
	RDMA_BYTES = 2 * WQE_UNIT,
	ATOMIC_BYTES = 3 * WQE_UNIT,
	UD_BYTES = WQE_UNIT + sizeof(struct mlx5_wqe_datagram_seg),
	ATOMIC_WRITE_BYTES = 3 * WQE_UNIT,
};

static inline void open_send(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm)
{
	struct wqe wqe;

	if (wr_begin(qp, call, opcode, imm, SEND_BYTES + qp->sq.max_payload, WC_OPCODE_FROM_CQE, WR_SETTER_DATA, &wqe))
		qp->builder.offset = SEND_BYTES;
}

/* The AV comes from ibv_wr_set_ud_addr(3), before or after the data; its place is kept free. */
static inline void open_send_ud(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm)
{
	struct wqe wqe;

	if (wr_begin(qp, call, opcode, imm, UD_BYTES + qp->sq.max_payload, WC_OPCODE_FROM_CQE,
		     WR_SETTER_DATA | WR_SETTER_ADDRESS, &wqe))
		qp->builder.offset = UD_BYTES;
}

static inline void open_rdma(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm, uint32_t rkey,
			     uint64_t remote_addr)
{
	struct wqe wqe;

	if (!wr_begin(qp, call, opcode, imm, RDMA_BYTES + qp->sq.max_payload, WC_OPCODE_FROM_CQE, WR_SETTER_DATA, &wqe))
		return;
	wqe_set_raddr(wqe, WQE_UNIT, remote_addr, rkey);
	qp->builder.offset = RDMA_BYTES;
}

static inline void open_atomic(struct user_qp *qp, const char *call, uint32_t opcode, uint32_t rkey,
			       uint64_t remote_addr, uint64_t swap_add, uint64_t compare)
{
	struct wqe wqe;

	if (!wr_begin(qp, call, opcode, 0, ATOMIC_BYTES + qp->sq.max_payload, WC_OPCODE_FROM_CQE, WR_SETTER_DATA, &wqe))
		return;
	wqe_set_raddr(wqe, WQE_UNIT, remote_addr, rkey);
	wqe_set_atomic(wqe, 2 * WQE_UNIT, swap_add, compare);
	qp->builder.offset = ATOMIC_BYTES;
}

void wr_send(struct ibv_qp_ex *ex)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send", MLX5_OPCODE_SEND, 0);
}

void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send_imm", MLX5_OPCODE_SEND_IMM, imm_data);
}

void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send_inv", MLX5_OPCODE_SEND_INVAL, htobe32(invalidate_rkey));
}

void wr_send_ud(struct ibv_qp_ex *ex)
{
	open_send_ud(to_user_qp_ex(ex), "ibv_wr_send", MLX5_OPCODE_SEND, 0);
}

void wr_send_imm_ud(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_send_ud(to_user_qp_ex(ex), "ibv_wr_send_imm", MLX5_OPCODE_SEND_IMM, imm_data);
}

void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_write", MLX5_OPCODE_RDMA_WRITE, 0, rkey, remote_addr);
}

void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_write_imm", MLX5_OPCODE_RDMA_WRITE_IMM, imm_data, rkey, remote_addr);
}

void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_read", MLX5_OPCODE_RDMA_READ, 0, rkey, remote_addr);
}

void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	open_atomic(to_user_qp_ex(ex), "ibv_wr_atomic_cmp_swp", MLX5_OPCODE_ATOMIC_CS, rkey, remote_addr, swap,
		    compare);
}

void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	open_atomic(to_user_qp_ex(ex), "ibv_wr_atomic_fetch_add", MLX5_OPCODE_ATOMIC_FA, rkey, remote_addr, add, 0);
}

/*
 * mlx5 has no opcode for ATOMIC WRITE (IBTA A19: 8 bytes, aligned, placed as one). An RDMA WRITE with 8 bytes
 * of inline data says the same: the device stores an aligned 8-byte tail with one store.
 */
void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe;

	if (!wr_begin(qp, "ibv_wr_atomic_write", MLX5_OPCODE_RDMA_WRITE, 0, ATOMIC_WRITE_BYTES, IBV_WC_ATOMIC_WRITE, 0,
		      &wqe))
		return;
	if (remote_addr % sizeof(uint64_t)) {
		WR_REFUSE(qp, "ibv_wr_atomic_write", EINVAL, RULE_ATOMIC_WRITE_ALIGNMENT, remote_addr);
		return;
	}
	wqe_set_raddr(wqe, WQE_UNIT, remote_addr, rkey);
	wqe_set_inline_header(wqe, RDMA_BYTES, sizeof(uint64_t));
	wqe_copy(wqe, RDMA_BYTES + sizeof(struct mlx5_wqe_inl_data_seg), atomic_wr, sizeof(uint64_t));
	wr_finish(qp, ATOMIC_WRITE_BYTES);
}

void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind_info)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe;
	int err;

	if (!wr_begin(qp, "ibv_wr_bind_mw", MLX5_OPCODE_UMR, htobe32(mw->rkey), UMR_BIND_BYTES, IBV_WC_BIND_MW, 0,
		      &wqe))
		return;
	err = umr_bind_check(qp, "ibv_wr_bind_mw", bind_info);
	if (err) {
		wr_latch(qp, err);
		return;
	}
	qp->builder.fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
	/* As type 2 whatever the window's type (mlx5-formats 4.12): the call is for those only. */
	wr_finish(qp, umr_bind(wqe, IBV_MW_TYPE_2, qp->base.qp_num, rkey, bind_info));
}

void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe;

	if (!wr_begin(qp, "ibv_wr_local_inv", MLX5_OPCODE_UMR, htobe32(invalidate_rkey), UMR_PAYLOAD_OFFSET,
		      IBV_WC_LOCAL_INV, 0, &wqe))
		return;
	qp->builder.fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
	wr_finish(qp, umr_invalidate(wqe));
}
