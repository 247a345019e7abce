/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All operations of the transport are set (mlx5-formats 4.2), even those that send_ops does not name, because programs
 * rely on it. An operation that the transport lacks latches EOPNOTSUPP.
 */
#include "verbs/object/qp_types.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

const struct dv_builders *dv_builders;

static void builder_refuse(struct ibv_qp_ex *ex, const char *call)
{
	struct user_qp *qp = to_user_qp_ex(ex);

	if (!qp->builder.error)
		wr_refuse(qp, call, EOPNOTSUPP, RULE_WR_NOT_OF_TYPE, FIGURES(qp->type));
}

static void refuse_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	(void)rkey;
	builder_refuse(ex, "ibv_wr_send_inv");
}

static void refuse_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr, (void)hdr_sz, (void)mss;
	builder_refuse(ex, "ibv_wr_send_tso");
}

static void refuse_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	(void)rkey, (void)remote_addr;
	builder_refuse(ex, "ibv_wr_rdma_write");
}

static void refuse_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	(void)rkey, (void)remote_addr, (void)imm_data;
	builder_refuse(ex, "ibv_wr_rdma_write_imm");
}

static void refuse_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	(void)rkey, (void)remote_addr;
	builder_refuse(ex, "ibv_wr_rdma_read");
}

static void refuse_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	(void)rkey, (void)remote_addr, (void)compare, (void)swap;
	builder_refuse(ex, "ibv_wr_atomic_cmp_swp");
}

static void refuse_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	(void)rkey, (void)remote_addr, (void)add;
	builder_refuse(ex, "ibv_wr_atomic_fetch_add");
}

static void refuse_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	(void)rkey, (void)remote_addr, (void)atomic_wr;
	builder_refuse(ex, "ibv_wr_atomic_write");
}

static void refuse_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	(void)mw, (void)rkey, (void)info;
	builder_refuse(ex, "ibv_wr_bind_mw");
}

static void refuse_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	(void)rkey;
	builder_refuse(ex, "ibv_wr_local_inv");
}

static void refuse_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	(void)ah, (void)remote_qpn, (void)remote_qkey;
	builder_refuse(ex, "ibv_wr_set_ud_addr");
}

static void refuse_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	(void)remote_srqn;
	builder_refuse(ex, "ibv_wr_set_xrc_srqn");
}

/* Sets the functions of every type, and refusals for the rest. */
static void fill_common(struct ibv_qp_ex *ex)
{
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete_refused;
	ex->wr_abort = wr_abort;

	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = refuse_send_inv;
	ex->wr_send_tso = refuse_send_tso;
	ex->wr_rdma_write = refuse_write;
	ex->wr_rdma_write_imm = refuse_write_imm;
	ex->wr_rdma_read = refuse_read;
	ex->wr_atomic_cmp_swp = refuse_cmp_swp;
	ex->wr_atomic_fetch_add = refuse_fetch_add;
	ex->wr_atomic_write = refuse_atomic_write;
	ex->wr_bind_mw = refuse_bind_mw;
	ex->wr_local_inv = refuse_local_inv;

	ex->wr_set_ud_addr = refuse_set_ud_addr;
	ex->wr_set_xrc_srqn = refuse_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
}

static void fill_uc(struct ibv_qp_ex *ex)
{
	ex->wr_send_inv = wr_send_inv;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
}

static void fill_rc(struct ibv_qp_ex *ex)
{
	fill_uc(ex);
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
}

/* XRC and DC: the functions of RC, each with an address. */
static void fill_addressed(struct ibv_qp_ex *ex)
{
	ex->wr_send = wr_send_to;
	ex->wr_send_imm = wr_send_imm_to;
	ex->wr_send_inv = wr_send_inv_to;
	ex->wr_rdma_write = wr_rdma_write_to;
	ex->wr_rdma_write_imm = wr_rdma_write_imm_to;
	ex->wr_rdma_read = wr_rdma_read_to;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp_to;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add_to;
	ex->wr_atomic_write = wr_atomic_write_to;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
}

static void fill_ud(struct ibv_qp_ex *ex)
{
	ex->wr_send = wr_send_ud;
	ex->wr_send_imm = wr_send_imm_ud;
	ex->wr_set_ud_addr = wr_set_ud_addr;
}

int wr_table_fill(struct user_qp *qp, uint64_t send_ops)
{
	const struct qp_type_info *type = qp_type_info(qp->type, qp->dc_type);
	uint64_t unknown = send_ops & ~(type ? type->send_ops : 0);

	if (unknown)
		return -REFUSE(hca_of_context(qp->base.context), "ibv_create_qp_ex", EOPNOTSUPP, RULE_QP_SEND_OPS,
			       unknown, qp->type);
	fill_common(&qp->ex);
	switch (qp->type) {
	case IBV_QPT_RC:
		fill_rc(&qp->ex);
		return 0;
	case IBV_QPT_UC:
		fill_uc(&qp->ex);
		return 0;
	case IBV_QPT_UD:
		fill_ud(&qp->ex);
		return 0;
	case IBV_QPT_DRIVER:
		/* The address setters of a DCI are members of struct mlx5dv_qp_ex. */
		fill_addressed(&qp->ex);
		return 0;
	case IBV_QPT_XRC_SEND:
		fill_addressed(&qp->ex);
		qp->ex.wr_set_xrc_srqn = wr_set_xrc_srqn;
		return 0;
	default: /* XRC_RECV (no send queue) and RAW_PACKET (no builders) were refused earlier */
		return -EOPNOTSUPP;
	}
}
