/* SPDX-License-Identifier: BSD-2-Clause */
/* DCIs and DCTs, see dc.h. */
#include "support/dc.h"

enum { CQ_ENTRIES = 255, FIRST_PSN = 0xfffff0, MIN_RNR_TIMER = 1 };

struct dci_options dci_defaults(void)
{
	return (struct dci_options){
		.max_send_sge = PAIR_SGES,
		.max_inline_data = DC_INLINE,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
	};
}

static void create_cq(struct endpoint *end)
{
	end->cq = ibv_create_cq(end->side->context, CQ_ENTRIES, end, NULL, 0);
	assert_non_null(end->cq);
}

static struct ibv_ah *address_of(const struct side *side, const struct side *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = peer->gid, .sgid_index = side->gid_index, .hop_limit = 1},
	};
	struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);

	assert_non_null(ah);
	return ah;
}

void dci_create(struct dci *dci, struct side *side, struct side *peer, const struct dci_options *options)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = DC_WRS,
			.max_send_sge = options->max_send_sge,
			.max_inline_data = options->max_inline_data},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags = DC_RC_OPS,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI,
		.send_ops_flags = options->dv_send_ops,
		.create_flags = options->dv_create_flags,
	};

	*dci = (struct dci){.end.side = side, .options = *options};
	create_cq(&dci->end);
	attr.send_cq = attr.recv_cq = dci->end.cq;
	if (options->dv_send_ops)
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
	if (options->dv_create_flags)
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	if (options->streams) {
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
		dv.dc_init_attr.dci_streams.log_num_concurent = options->log_streams;
		dv.dc_init_attr.dci_streams.log_num_errored = options->log_errored;
	}
	dci->end.qp = mlx5dv_create_qp(side->context, &attr, &dv);
	assert_non_null(dci->end.qp);
	dci->end.cap = attr.cap;
	dci->end.ex = ibv_qp_to_qp_ex(dci->end.qp);
	assert_non_null(dci->end.ex);
	dci->end.dv = mlx5dv_qp_ex_from_ibv_qp_ex(dci->end.ex);
	dci->ah = address_of(side, peer);
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	expect_error(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), 0);
}

void dci_connect(struct dci *dci)
{
	const struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.sq_psn = FIRST_PSN,
		.timeout = dci->options.timeout,
		.retry_cnt = dci->options.retry_cnt,
		.rnr_retry = dci->options.rnr_retry,
		.max_rd_atomic = dci->options.max_rd_atomic,
	};

	modify(dci->end.qp, IBV_QPS_RESET, attr, 0);
	modify(dci->end.qp, IBV_QPS_INIT, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	modify(dci->end.qp, IBV_QPS_RTR, attr, IBV_QP_PATH_MTU);
	modify(dci->end.qp, IBV_QPS_RTS, attr,
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN);
}

void dci_open(struct dci *dci, struct side *side, struct side *peer, const struct dci_options *options)
{
	dci_create(dci, side, peer, options);
	dci_connect(dci);
}

void dci_close(struct dci *dci)
{
	expect_error(ibv_destroy_qp(dci->end.qp), 0);
	expect_error(ibv_destroy_ah(dci->ah), 0);
	expect_error(ibv_destroy_cq(dci->end.cq), 0);
}

void dct_create(struct dct *dct, struct side *side, uint64_t key)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = DC_SRQ_WRS, .max_sge = PAIR_SGES}};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = side->pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = key},
	};

	*dct = (struct dct){.end.side = side, .key = key};
	create_cq(&dct->end);
	dct->srq = ibv_create_srq(side->pd, &srq);
	assert_non_null(dct->srq);
	attr.send_cq = attr.recv_cq = dct->end.cq;
	attr.srq = dct->srq;
	dct->end.qp = mlx5dv_create_qp(side->context, &attr, &dv);
	assert_non_null(dct->end.qp);
}

int dct_to_init(struct dct *dct, unsigned int access)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};

	return ibv_modify_qp(dct->end.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int dct_to_rtr(struct dct *dct)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = MIN_RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = dct->end.side->gid_index, .hop_limit = 1}},
	};

	return ibv_modify_qp(dct->end.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
}

void dct_open(struct dct *dct, struct side *side, uint64_t key)
{
	dct_create(dct, side, key);
	expect_error(dct_to_init(dct, SIDE_REMOTE), 0);
	expect_error(dct_to_rtr(dct), 0);
}

void dct_close(struct dct *dct)
{
	expect_error(ibv_destroy_qp(dct->end.qp), 0);
	expect_error(ibv_destroy_srq(dct->srq), 0);
	expect_error(ibv_destroy_cq(dct->end.cq), 0);
}

void dct_receive(struct dct *dct, uint64_t wr_id, struct ibv_sge *sge, int count)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = count}, *bad;

	expect_error(ibv_post_srq_recv(dct->srq, &wr, &bad), 0);
}

void dci_address(struct dci *dci, const struct dct *target, uint16_t stream)
{
	if (stream)
		mlx5dv_wr_set_dc_addr_stream(dci->end.dv, dci->ah, target->end.qp->qp_num, target->key, stream);
	else
		mlx5dv_wr_set_dc_addr(dci->end.dv, dci->ah, target->end.qp->qp_num, target->key);
}

static void finish(struct dci *dci, const struct dct *target, uint16_t stream, struct ibv_sge source)
{
	ibv_wr_set_sge(dci->end.ex, source.lkey, source.addr, source.length);
	dci_address(dci, target, stream);
	expect_error(ibv_wr_complete(dci->end.ex), 0);
}

void dci_write(struct dci *dci, const struct dct *target, uint16_t stream, uint64_t wr_id, struct ibv_sge source,
	       uint32_t rkey, uint64_t remote_addr)
{
	ibv_wr_start(dci->end.ex);
	dci->end.ex->wr_id = wr_id;
	dci->end.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(dci->end.ex, rkey, remote_addr);
	finish(dci, target, stream, source);
}

void dci_send(struct dci *dci, const struct dct *target, uint16_t stream, uint64_t wr_id, struct ibv_sge source)
{
	ibv_wr_start(dci->end.ex);
	dci->end.ex->wr_id = wr_id;
	dci->end.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(dci->end.ex);
	finish(dci, target, stream, source);
}
