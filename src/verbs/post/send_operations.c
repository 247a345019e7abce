/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/post/send_operations.h"

#include "verbs/post/umr_segments.h"
#include "verbs/post/wqe_builder.h"

enum {
	PLAIN_BYTES = WQE_UNIT,
	RDMA_BYTES = 2 * WQE_UNIT,
	ATOMIC_BYTES = 3 * WQE_UNIT,
	XRC_BYTES = WQE_UNIT,
	DATAGRAM_BYTES = WQE_UNIT + sizeof(struct mlx5_wqe_datagram_seg),
};

/* htobe32() for initialisers. */
#if __BYTE_ORDER == __LITTLE_ENDIAN
#define BIG_ENDIAN_32(value) __builtin_bswap32(value)
#else
#define BIG_ENDIAN_32(value) (value)
#endif

#define OPERATION_OF(code, its_form, bytes, of_completion)                                                             \
	.opcode = BIG_ENDIAN_32(code), .form = its_form, .header = bytes, .wc_opcode = of_completion
#define OPERATION(code, its_form, bytes, of_completion) OPERATION_OF(MLX5_OPCODE_##code, its_form, bytes, of_completion)
#define SHORT(code, its_form, bytes)                                                                                   \
	OPERATION(code, its_form, bytes, WC_OPCODE_FROM_CQE), .is_short = true,                                        \
							      .short_units = BIG_ENDIAN_32((bytes) / WQE_UNIT + 1)
#define WITH_IMM .immediate = -1
#define FENCING .fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE

#define PLAIN(code) SHORT(code, FORM_PLAIN, PLAIN_BYTES)
#define RDMA(code) SHORT(code, FORM_RDMA, RDMA_BYTES)
#define ATOMIC(code) SHORT(code, FORM_ATOMIC, ATOMIC_BYTES)
#define ATOMIC_WRITE(address)                                                                                          \
	OPERATION_OF(WQE_OPCODE_ATOMIC_WRITE, FORM_ATOMIC_WRITE, RDMA_BYTES + (address), IBV_WC_ATOMIC_WRITE)
#define BIND OPERATION(UMR, FORM_BIND, UMR_BIND_BYTES, IBV_WC_BIND_MW), FENCING
#define INVALIDATE OPERATION(UMR, FORM_INVALIDATE, UMR_PAYLOAD_OFFSET, IBV_WC_LOCAL_INV), FENCING
#define XRC_PLAIN(code) OPERATION(code, FORM_PLAIN, PLAIN_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE)
#define XRC_RDMA(code) OPERATION(code, FORM_RDMA, RDMA_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE)
#define XRC_ATOMIC(code) OPERATION(code, FORM_ATOMIC, ATOMIC_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE)
#define DATAGRAM(code) OPERATION(code, FORM_DATAGRAM, DATAGRAM_BYTES, WC_OPCODE_FROM_CQE)

static const struct send_operation rc_operations[SEND_OPERATIONS] = {
	[IBV_WR_SEND] = {PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {PLAIN(SEND_IMM), WITH_IMM},
	[IBV_WR_SEND_WITH_INV] = {SHORT(SEND_INVAL, FORM_SEND_INVAL, PLAIN_BYTES)},
	[IBV_WR_RDMA_WRITE] = {RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {RDMA(RDMA_WRITE_IMM), WITH_IMM},
	[IBV_WR_RDMA_READ] = {RDMA(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {ATOMIC(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {ATOMIC(ATOMIC_FA)},
	[IBV_WR_ATOMIC_WRITE] = {ATOMIC_WRITE(0)},
	[IBV_WR_BIND_MW] = {BIND},
	[IBV_WR_LOCAL_INV] = {INVALIDATE},
};

/* mlx5-formats 1.4: as RC, with the SRQ segment before the others. Local operations name no SRQ. */
static const struct send_operation xrc_operations[SEND_OPERATIONS] = {
	[IBV_WR_SEND] = {XRC_PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {XRC_PLAIN(SEND_IMM), WITH_IMM},
	[IBV_WR_SEND_WITH_INV] = {XRC_PLAIN(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {XRC_RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {XRC_RDMA(RDMA_WRITE_IMM), WITH_IMM},
	[IBV_WR_RDMA_READ] = {XRC_RDMA(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {XRC_ATOMIC(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {XRC_ATOMIC(ATOMIC_FA)},
	[IBV_WR_ATOMIC_WRITE] = {ATOMIC_WRITE(XRC_BYTES)},
	[IBV_WR_BIND_MW] = {BIND},
	[IBV_WR_LOCAL_INV] = {INVALIDATE},
};

static const struct send_operation uc_operations[SEND_OPERATIONS] = {
	[IBV_WR_SEND] = {PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {PLAIN(SEND_IMM), WITH_IMM},
	[IBV_WR_SEND_WITH_INV] = {SHORT(SEND_INVAL, FORM_SEND_INVAL, PLAIN_BYTES)},
	[IBV_WR_RDMA_WRITE] = {RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {RDMA(RDMA_WRITE_IMM), WITH_IMM},
	[IBV_WR_RDMA_READ] = {PLAIN(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {PLAIN(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {PLAIN(ATOMIC_FA)},
	[IBV_WR_BIND_MW] = {BIND},
	[IBV_WR_LOCAL_INV] = {INVALIDATE},
};

/*
 * Operations that a datagram cannot have contain no address: for these, the union wr of struct ibv_send_wr does not
 * contain ud.ah.
 */
static const struct send_operation ud_operations[SEND_OPERATIONS] = {
	[IBV_WR_SEND] = {DATAGRAM(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {DATAGRAM(SEND_IMM), WITH_IMM},
	[IBV_WR_SEND_WITH_INV] = {DATAGRAM(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {PLAIN(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {PLAIN(RDMA_WRITE_IMM), WITH_IMM},
	[IBV_WR_RDMA_READ] = {PLAIN(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {PLAIN(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {PLAIN(ATOMIC_FA)},
	[IBV_WR_BIND_MW] = {OPERATION(UMR, FORM_PLAIN, PLAIN_BYTES, IBV_WC_BIND_MW), FENCING},
	[IBV_WR_LOCAL_INV] = {OPERATION(UMR, FORM_PLAIN, PLAIN_BYTES, IBV_WC_LOCAL_INV), FENCING},
};

/* No member of struct ibv_send_wr names the target of a DCI. */
static const struct send_operation dci_operations[SEND_OPERATIONS];

static const struct send_operation *operations_of_type(const struct user_qp *qp)
{
	if (qp->dc_type == MLX5DV_DCTYPE_DCI)
		return dci_operations;
	switch (qp->type) {
	case IBV_QPT_UC:
		return uc_operations;
	case IBV_QPT_UD:
		return ud_operations;
	case IBV_QPT_XRC_SEND:
		return xrc_operations;
	default:
		return rc_operations;
	}
}

void sq_update_short(struct send_queue *sq)
{
	sq->short_allowed = sq->max_gs > 0 && !sq->oversized && !sq->fence_cache;
}

/* mlx5-formats 1.3, without the inherited fence. */
static uint8_t fm_ce_se(unsigned int send_flags, bool signal_all)
{
	uint8_t fence = send_flags & IBV_SEND_FENCE ? MLX5_WQE_CTRL_FENCE : 0;
	uint8_t signaled = send_flags & IBV_SEND_SIGNALED || signal_all ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
	uint8_t solicited = send_flags & IBV_SEND_SOLICITED ? MLX5_WQE_CTRL_SOLICITED : 0;

	return fence | signaled | solicited;
}

void send_queue_derive(struct user_qp *qp)
{
	struct send_queue *sq = &qp->sq;

	sq->slots = sq->wqebb_count - 1;
	sq->operations = operations_of_type(qp);
	sq->qpn = htobe32(qp->base.qp_num << 8);
	for (unsigned int flags = 0; flags < WQE_FLAGS; flags++)
		sq->flags[flags] = fm_ce_se(flags, qp->sq_sig_all);
	sq_update_short(sq);
}
