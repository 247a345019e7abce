/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the WQEs that the driver's own builders write: mlx5-formats 1.2 to 1.5. */
#include <string.h>

#include "lint/state.h"
#include "verbs/post/umr_segments.h"
#include "verbs/post/wqe_builder.h"

#define INLINE_DATA UINT32_C(0x80000000)

/* mlx5-formats 1.3: the modes from "fence" on wait for READs and atomics. */
enum { FENCE_MODE_SHIFT = 5, FENCE_MODE_READS = 2 };

static uint32_t data_offset(const struct user_qp *qp, uint8_t opcode)
{
	uint32_t address = WQE_UNIT + qp->sq.address_bytes;

	switch (opcode) {
	case MLX5_OPCODE_SEND:
	case MLX5_OPCODE_SEND_IMM:
	case MLX5_OPCODE_SEND_INVAL:
		return address;
	case MLX5_OPCODE_RDMA_WRITE:
	case MLX5_OPCODE_RDMA_WRITE_IMM:
	case MLX5_OPCODE_RDMA_READ:
	case WQE_OPCODE_ATOMIC_WRITE:
		return address + WQE_UNIT;
	case MLX5_OPCODE_ATOMIC_CS:
	case MLX5_OPCODE_ATOMIC_FA:
		return address + 2 * WQE_UNIT;
	case MLX5_OPCODE_MMO:
		return 2 * WQE_UNIT; /* after the word for the device's own use */
	default:
		return 0;
	}
}

static bool is_written(uint8_t opcode, uint32_t number)
{
	switch (opcode) {
	case MLX5_OPCODE_RDMA_READ:
	case MLX5_OPCODE_ATOMIC_CS:
	case MLX5_OPCODE_ATOMIC_FA:
		return true;
	case MLX5_OPCODE_MMO:
		return number == 1; /* source, destination */
	default:
		return false;
	}
}

/* Reads the inline data of @length bytes after its length word at @at. */
static void read_inline(struct wqe wqe, uint32_t at, uint32_t length, struct lint_send *send)
{
	uint32_t words = length / sizeof(uint32_t);

	send->inline_length = length;
	send->inlined = words < LINT_INLINE_WORDS ? words : LINT_INLINE_WORDS;
	for (uint32_t i = 0; i < send->inlined; i++) {
		uint32_t place = at + sizeof(uint32_t) * (i + 1);

		send->inline_words[i] = ((uint32_t *)wqe_unit(wqe, place & ~15u))[place % WQE_UNIT / sizeof(uint32_t)];
	}
}

/* Returns the rkey that a bind gives its window, or 0 for other WQEs and a bind that frees the key. */
static uint32_t bound_rkey(const struct user_qp *qp, struct wqe wqe, uint32_t index)
{
	const struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe, 0);
	const struct mlx5_wqe_mkey_context_seg *mkey = wqe_unit(wqe, UMR_MKEY_OFFSET);

	if (qp->sq.wc_opcode[index & (qp->sq.wqebb_count - 1)] != IBV_WC_BIND_MW ||
	    mkey->free & MLX5_WQE_MKEY_CONTEXT_FREE)
		return 0;
	return (be32toh(ctrl->imm) & ~0xffu) | (be32toh(mkey->qpn_mkey) & 0xff);
}

/* Fills in the remote range of @send, if any. Its pieces are already filled in. Atomics have operands of 8 bytes. */
static void read_remote(const struct user_qp *qp, struct wqe wqe, struct lint_send *send)
{
	const struct mlx5_wqe_raddr_seg *remote;
	bool atomic = send->opcode == MLX5_OPCODE_ATOMIC_CS || send->opcode == MLX5_OPCODE_ATOMIC_FA;

	send->remote_length = 0;
	if (!atomic && send->opcode != MLX5_OPCODE_RDMA_WRITE && send->opcode != MLX5_OPCODE_RDMA_WRITE_IMM &&
	    send->opcode != MLX5_OPCODE_RDMA_READ)
		return;
	remote = wqe_unit(wqe, WQE_UNIT + qp->sq.address_bytes);
	send->rkey = be32toh(remote->rkey);
	send->remote_address = be64toh(remote->raddr);
	send->remote_length = atomic ? sizeof(uint64_t) : send->inline_length;
	for (uint32_t i = 0; !atomic && i < send->pieces; i++)
		send->remote_length += send->piece[i].length;
}

/* Reads the data segments before byte @end of the WQE: as pieces, or inline data as words. */
static void read_pieces(const struct user_qp *qp, struct wqe wqe, uint32_t end, struct lint_send *send)
{
	uint32_t at;

	at = data_offset(qp, send->opcode);
	for (; at && at < end && send->pieces < LINT_PIECES; at += WQE_UNIT) {
		const struct mlx5_wqe_data_seg *data = wqe_unit(wqe, at);
		uint32_t length = be32toh(data->byte_count);

		/* The device copied inline data, so the program may reuse its buffer. */
		if (length & INLINE_DATA) {
			read_inline(wqe, at, length & ~INLINE_DATA, send);
			return;
		}
		send->piece[send->pieces] = (struct lint_piece){.address = be64toh(data->addr),
								.length = length,
								.lkey = be32toh(data->lkey),
								.written = is_written(send->opcode, send->pieces)};
		send->pieces++;
	}
}

void lint_send_read(const struct user_qp *qp, uint32_t index, struct lint_send *send)
{
	struct wqe wqe = wqe_at(&qp->sq, index);
	const struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe, 0);
	uint32_t end = (be32toh(ctrl->qpn_ds) & 0x3f) * WQE_UNIT;

	send->opcode = be32toh(ctrl->opmod_idx_opcode) & 0xff;
	send->signalled = ctrl->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE;
	send->fenced = ctrl->fm_ce_se >> FENCE_MODE_SHIFT >= FENCE_MODE_READS;
	send->pieces = 0;
	send->inlined = send->inline_length = 0;
	send->wr_id = qp->sq.wr_id[index & (qp->sq.wqebb_count - 1)];
	send->bound_rkey = bound_rkey(qp, wqe, index);
	read_pieces(qp, wqe, end, send);
	read_remote(qp, wqe, send);
}
