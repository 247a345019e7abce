/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 4.1 (send), 2.1 (receive). */
#include "verbs/qp/qp_sizing.h"

#include <errno.h>
#include <string.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/post/wqe_builder.h"

enum {
	CTRL_BYTES = WQE_UNIT,
	RADDR_BYTES = WQE_UNIT,
	ATOMIC_BYTES = WQE_UNIT,
	INLINE_HEADER_BYTES = sizeof(struct mlx5_wqe_inl_data_seg),
	/* UMR WQE with room for one 64-byte piece of payload, which gives the 4 entries of a default WQE */
	UMR_BYTES = 192,
};

#define OPS_RADDR                                                                                                      \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                   \
	 IBV_QP_EX_WITH_ATOMIC_WRITE)
#define OPS_ATOMIC (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define OPS_UMR (IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define DV_OPS_UMR (MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE)

static uint64_t round_up_power(uint64_t value)
{
	return value <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(value - 1));
}

/* Returns the bytes before the data of the longest operation. */
static uint32_t data_header(uint64_t ops)
{
	if (ops & OPS_ATOMIC)
		return CTRL_BYTES + RADDR_BYTES + ATOMIC_BYTES;
	if (ops & OPS_RADDR)
		return CTRL_BYTES + RADDR_BYTES;
	return CTRL_BYTES;
}

static int size_send_queue(const struct qp_sizing_request *request, struct qp_sizing *sizing)
{
	const struct ibv_qp_cap *cap = &request->cap;
	uint32_t header = data_header(request->send_ops) + request->type->address_bytes;
	bool umr = request->send_ops & OPS_UMR || request->dv_send_ops & DV_OPS_UMR;
	uint32_t overhead = umr ? UMR_BYTES + (uint32_t)request->type->address_bytes : header;
	/*
	 * Two limits apply: a WQE's share of the ring, and the 63 units that `ds` can encode. The second excludes the
	 * overhead of UMR, because operations with data do not have it.
	 */
	uint32_t room = LIMIT_MAX_SQ_DESC_SIZE - overhead;
	uint64_t bytes, count;

	if (room > WQE_MAX_BYTES - header)
		room = WQE_MAX_BYTES - header;
	if (cap->max_send_sge > room / WQE_UNIT)
		return -REFUSE(request->hca, request->call, EINVAL, RULE_QP_MAX_SEND_SGE, cap->max_send_sge,
			       room / WQE_UNIT, overhead);
	if (cap->max_inline_data > room - INLINE_HEADER_BYTES)
		return -REFUSE(request->hca, request->call, EINVAL, RULE_QP_MAX_INLINE, cap->max_inline_data,
			       room - INLINE_HEADER_BYTES, overhead);

	bytes = overhead + WQE_UNIT * (uint64_t)cap->max_send_sge;
	if (cap->max_inline_data) {
		uint64_t with_inline = overhead + wqe_round(INLINE_HEADER_BYTES + cap->max_inline_data);

		bytes = with_inline > bytes ? with_inline : bytes;
	}
	sizing->wqe_size = wqe_blocks(bytes) * WQE_BLOCK;

	count = round_up_power((uint64_t)cap->max_send_wr * sizing->wqe_size) / WQE_BLOCK;
	if (count > LIMIT_MAX_SEND_WQEBB)
		return -REFUSE(request->hca, request->call, EINVAL, RULE_QP_MAX_SEND_WR, cap->max_send_wr,
			       sizing->wqe_size, count, LIMIT_MAX_SEND_WQEBB);
	sizing->wqebb_count = count;
	sizing->cap.max_send_wr = count * WQE_BLOCK / sizing->wqe_size;

	if (room > sizing->wqe_size - overhead)
		room = sizing->wqe_size - overhead;
	/* Without SGEs, not even the header of inline data fits if the overhead fills its blocks. */
	sizing->cap.max_inline_data = room > INLINE_HEADER_BYTES ? room - INLINE_HEADER_BYTES : 0;
	return 0;
}

static int size_receive_queue(const struct qp_sizing_request *request, struct qp_sizing *sizing)
{
	const struct ibv_qp_cap *cap = &request->cap;
	uint32_t sge = cap->max_recv_sge ? cap->max_recv_sge : 1;
	uint32_t stride;

	if (cap->max_recv_wr > LIMIT_MAX_QP_WR)
		return -REFUSE(request->hca, request->call, EINVAL, RULE_QP_MAX_RECV_WR, cap->max_recv_wr,
			       LIMIT_MAX_QP_WR);
	if (sge > LIMIT_MAX_RQ_DESC_SIZE / WQE_UNIT)
		return -REFUSE(request->hca, request->call, EINVAL, RULE_QP_MAX_RECV_SGE, cap->max_recv_sge,
			       LIMIT_MAX_RQ_DESC_SIZE / WQE_UNIT);

	stride = round_up_power(sge * WQE_UNIT);
	sizing->rq_count = round_up_power(cap->max_recv_wr);
	/* At least 64 bytes, which keeps the send ring after it aligned. */
	if (sizing->rq_count * stride < WQE_BLOCK)
		sizing->rq_count = WQE_BLOCK / stride;
	sizing->rq_shift = __builtin_ctz(stride);
	sizing->cap.max_recv_wr = sizing->rq_count;
	sizing->cap.max_recv_sge = stride / WQE_UNIT;
	return 0;
}

int qp_sizing_compute(const struct qp_sizing_request *request, struct qp_sizing *sizing)
{
	int err = 0;

	memset(sizing, 0, sizeof(*sizing));
	sizing->cap.max_send_sge = request->cap.max_send_sge;
	sizing->cap.max_inline_data = request->cap.max_inline_data;
	if (request->cap.max_send_wr)
		err = size_send_queue(request, sizing);
	if (!err && request->cap.max_recv_wr && !request->srq)
		err = size_receive_queue(request, sizing);
	return err;
}
