/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each operation opens a WQE and writes the segments before the data. Setters complete those with data (wr_setters.c).
 */
#include "verbs/memory/signature.h"
#include "verbs/post/umr_segments.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

enum {
	SEND_BYTES = WQE_UNIT,
	RDMA_BYTES = 2 * WQE_UNIT,
	ATOMIC_BYTES = 3 * WQE_UNIT,
	ATOMIC_WRITE_BYTES = 3 * WQE_UNIT,
	UD_ADDRESS = sizeof(struct mlx5_wqe_datagram_seg),
};

/*
 * @address: bytes after the control segment, reserved for the address setter, which may precede or follow the data
 * setter; 0: none. (mlx5-formats 1.4: control, address, remote address, atomic, data)
 */
static inline uint8_t setters_needed(uint32_t address)
{
	return address ? WR_SETTER_DATA | WR_SETTER_ADDRESS : WR_SETTER_DATA;
}

static inline void open_send(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm, uint32_t address)
{
	uint32_t header = SEND_BYTES + address;
	struct wqe wqe;

	if (wr_begin(qp, call, opcode, imm, header + qp->sq.max_payload, WC_OPCODE_FROM_CQE, setters_needed(address),
		     &wqe))
		qp->builder.offset = header;
}

static inline void open_rdma(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm, uint32_t rkey,
			     uint64_t remote_addr, uint32_t address)
{
	uint32_t header = RDMA_BYTES + address;
	struct wqe wqe;

	if (!wr_begin(qp, call, opcode, imm, header + qp->sq.max_payload, WC_OPCODE_FROM_CQE, setters_needed(address),
		      &wqe))
		return;
	wqe_set_raddr(wqe, WQE_UNIT + address, remote_addr, rkey);
	qp->builder.offset = header;
}

static inline void open_atomic(struct user_qp *qp, const char *call, uint32_t opcode, uint32_t rkey,
			       uint64_t remote_addr, uint64_t swap_add, uint64_t compare, uint32_t address)
{
	uint32_t header = ATOMIC_BYTES + address;
	struct wqe wqe;

	if (!wr_begin(qp, call, opcode, 0, header + qp->sq.max_payload, WC_OPCODE_FROM_CQE, setters_needed(address),
		      &wqe))
		return;
	wqe_set_raddr(wqe, WQE_UNIT + address, remote_addr, rkey);
	wqe_set_atomic(wqe, 2 * WQE_UNIT + address, swap_add, compare);
	qp->builder.offset = header;
}

/* ---- RC, UC: the QP has a fixed peer -------------------------------------------------------------------------- */

void wr_send(struct ibv_qp_ex *ex)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send", MLX5_OPCODE_SEND, 0, 0);
}

void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send_imm", MLX5_OPCODE_SEND_IMM, imm_data, 0);
}

void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send_inv", MLX5_OPCODE_SEND_INVAL, htobe32(invalidate_rkey), 0);
}

void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_write", MLX5_OPCODE_RDMA_WRITE, 0, rkey, remote_addr, 0);
}

void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_write_imm", MLX5_OPCODE_RDMA_WRITE_IMM, imm_data, rkey, remote_addr,
		  0);
}

void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	open_rdma(to_user_qp_ex(ex), "ibv_wr_rdma_read", MLX5_OPCODE_RDMA_READ, 0, rkey, remote_addr, 0);
}

void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	open_atomic(to_user_qp_ex(ex), "ibv_wr_atomic_cmp_swp", MLX5_OPCODE_ATOMIC_CS, rkey, remote_addr, swap, compare,
		    0);
}

void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	open_atomic(to_user_qp_ex(ex), "ibv_wr_atomic_fetch_add", MLX5_OPCODE_ATOMIC_FA, rkey, remote_addr, add, 0, 0);
}

/* IBTA A19: 8 bytes, aligned, stored at once. mlx5 has no opcode for it; this device defines one. */
static inline void atomic_write(struct user_qp *qp, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr,
				uint32_t address)
{
	uint32_t bytes = ATOMIC_WRITE_BYTES + address, data = RDMA_BYTES + address;
	struct wqe wqe;

	if (!wr_begin(qp, "ibv_wr_atomic_write", WQE_OPCODE_ATOMIC_WRITE, 0, bytes, IBV_WC_ATOMIC_WRITE,
		      address ? WR_SETTER_ADDRESS : 0, &wqe))
		return;
	if (remote_addr % sizeof(uint64_t)) {
		wr_refuse(qp, "ibv_wr_atomic_write", EINVAL, RULE_ATOMIC_WRITE_ALIGNMENT, FIGURES(remote_addr));
		return;
	}
	wqe_set_raddr(wqe, WQE_UNIT + address, remote_addr, rkey);
	wqe_set_inline_header(wqe, data, sizeof(uint64_t));
	wqe_copy(wqe, data + sizeof(struct mlx5_wqe_inl_data_seg), atomic_wr, sizeof(uint64_t));
	qp->builder.offset = bytes;
	if (!address)
		wr_finish(qp, bytes);
}

void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	atomic_write(to_user_qp_ex(ex), rkey, remote_addr, atomic_wr, 0);
}

/* ---- UD: an address handle per request ------------------------------------------------------------------------ */

void wr_send_ud(struct ibv_qp_ex *ex)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send", MLX5_OPCODE_SEND, 0, UD_ADDRESS);
}

void wr_send_imm_ud(struct ibv_qp_ex *ex, __be32 imm_data)
{
	open_send(to_user_qp_ex(ex), "ibv_wr_send_imm", MLX5_OPCODE_SEND_IMM, imm_data, UD_ADDRESS);
}

/* ---- XRC, DC: all operations of RC, with an address each ------------------------------------------------------ */

void wr_send_to(struct ibv_qp_ex *ex)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_send(qp, "ibv_wr_send", MLX5_OPCODE_SEND, 0, qp->sq.address_bytes);
}

void wr_send_imm_to(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_send(qp, "ibv_wr_send_imm", MLX5_OPCODE_SEND_IMM, imm_data, qp->sq.address_bytes);
}

void wr_send_inv_to(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_send(qp, "ibv_wr_send_inv", MLX5_OPCODE_SEND_INVAL, htobe32(invalidate_rkey), qp->sq.address_bytes);
}

void wr_rdma_write_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_rdma(qp, "ibv_wr_rdma_write", MLX5_OPCODE_RDMA_WRITE, 0, rkey, remote_addr, qp->sq.address_bytes);
}

void wr_rdma_write_imm_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_rdma(qp, "ibv_wr_rdma_write_imm", MLX5_OPCODE_RDMA_WRITE_IMM, imm_data, rkey, remote_addr,
		  qp->sq.address_bytes);
}

void wr_rdma_read_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_rdma(qp, "ibv_wr_rdma_read", MLX5_OPCODE_RDMA_READ, 0, rkey, remote_addr, qp->sq.address_bytes);
}

void wr_atomic_cmp_swp_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_atomic(qp, "ibv_wr_atomic_cmp_swp", MLX5_OPCODE_ATOMIC_CS, rkey, remote_addr, swap, compare,
		    qp->sq.address_bytes);
}

void wr_atomic_fetch_add_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	open_atomic(qp, "ibv_wr_atomic_fetch_add", MLX5_OPCODE_ATOMIC_FA, rkey, remote_addr, add, 0,
		    qp->sq.address_bytes);
}

void wr_atomic_write_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	atomic_write(qp, rkey, remote_addr, atomic_wr, qp->sq.address_bytes);
}

/* ---- windows and keys: local, without an address -------------------------------------------------------------- */

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
	/* Type 2 for any window (mlx5-formats 4.12): the call is for type 2 windows only. */
	wr_finish(qp, umr_bind(wqe, IBV_MW_TYPE_2, qp->base.qp_num, rkey, bind_info));
}

void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct user_qp *qp = to_user_qp_ex(ex);
	struct wqe wqe;

	if (!wr_begin(qp, "ibv_wr_local_inv", MLX5_OPCODE_UMR, htobe32(invalidate_rkey), UMR_PAYLOAD_OFFSET,
		      IBV_WC_LOCAL_INV, 0, &wqe))
		return;
	block_state_forget(qp, invalidate_rkey);
	qp->builder.fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
	wr_finish(qp, umr_invalidate(wqe));
}
