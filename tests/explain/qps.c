/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 236 and 500 to 533: creating QPs, and calls on them. */
#include "rule_cases.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	VENDOR = 0x15b3,
	DESC_MAX = 1024,    /* MAX_SQ_DESC_SIZE */
	MAX_BLOCKS = 32768, /* MAX_SEND_WQEBB */
	/* mlx5-formats 4.1: a QP that may bind and invalidate; before its data */
	UMR_OVERHEAD = 192,
};

/* Returns the attributes that every QP has. */
static struct ibv_qp_init_attr_ex attributes(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = client.pd,
	};
}

static void fails(struct ibv_qp_init_attr_ex attr, int error)
{
	errno = 0;
	assert_null(ibv_create_qp_ex(client.context, &attr));
	expect_error(errno, error);
}

static void dv_fails(struct ibv_qp_init_attr_ex attr, struct mlx5dv_qp_init_attr dv, int error)
{
	errno = 0;
	assert_null(mlx5dv_create_qp(client.context, &attr, &dv));
	expect_error(errno, error);
}

RULE_CASE(QP_COMP_MASK)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.comp_mask |= 1 << 20;
	fails(attr, EINVAL);
	expect_refusal(QP_COMP_MASK,
		       "ibv_create_qp_ex → EINVAL: comp_mask of struct ibv_qp_init_attr_ex has unknown bits 0x100000");
}

RULE_CASE(QP_TSO_HEADER)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);

	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	fails(attr, EINVAL);
	expect_refusal(QP_TSO_HEADER, "ibv_create_qp_ex → EINVAL: a QP of type UD cannot have a max_tso_header");
}

RULE_CASE(QP_NO_SEND_QUEUE)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RAW_PACKET);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_RX_HASH;
	fails(attr, EINVAL);
	expect_refusal(
		QP_NO_SEND_QUEUE,
		"ibv_create_qp_ex → EINVAL: send_ops_flags are set for a QP of type RAW_PACKET, which has no send queue");
}

RULE_CASE(QP_SOURCE_QPN)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UC);

	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	fails(attr, EINVAL);
	expect_refusal(QP_SOURCE_QPN, "ibv_create_qp_ex → EINVAL: IBV_QP_CREATE_SOURCE_QPN is set for a QP of type UC");
}

RULE_CASE(QP_CREATE_FLAGS)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);

	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING;
	fails(attr, EOPNOTSUPP);
	expect_refusal(QP_CREATE_FLAGS,
		       "ibv_create_qp_ex → EOPNOTSUPP: create_flags 0x%x are unknown, not for this type of QP, or not "
		       "offered by this device",
		       IBV_QP_CREATE_PCI_WRITE_END_PADDING);
	attr = attributes(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	fails(attr, EINVAL);
	expect_refusal(QP_CREATE_FLAGS,
		       "ibv_create_qp_ex → EINVAL: create_flags 0x%x are unknown, not for this type of QP, or not "
		       "offered by this device",
		       IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
}

RULE_CASE(QP_DV_COMP_MASK)
{
	dv_fails(attributes(IBV_QPT_RC), (struct mlx5dv_qp_init_attr){.comp_mask = 1 << 16}, EINVAL);
	expect_refusal(QP_DV_COMP_MASK,
		       "mlx5dv_create_qp → EINVAL: comp_mask of struct mlx5dv_qp_init_attr has unknown bits 0x10000");
}

RULE_CASE(QP_DV_CREATE_FLAGS)
{
	dv_fails(attributes(IBV_QPT_RC),
		 (struct mlx5dv_qp_init_attr){.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
					      .create_flags = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS},
		 EINVAL);
	expect_refusal(
		QP_DV_CREATE_FLAGS,
		"mlx5dv_create_qp → EINVAL: create_flags 0x%x of struct mlx5dv_qp_init_attr are unknown, not for "
		"this type of QP, or not offered by this device",
		MLX5DV_QP_CREATE_TUNNEL_OFFLOADS);
}

RULE_CASE(QP_DV_SCATTER_FLAGS)
{
	const uint32_t both = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;

	dv_fails(attributes(IBV_QPT_RC),
		 (struct mlx5dv_qp_init_attr){.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
					      .create_flags = both},
		 EINVAL);
	expect_refusal(QP_DV_SCATTER_FLAGS,
		       "mlx5dv_create_qp → EINVAL: create_flags 0x%x both allow and disable scatter to CQE", both);
}

RULE_CASE(QP_DC_TYPE)
{
	dv_fails(attributes(IBV_QPT_RC),
		 (struct mlx5dv_qp_init_attr){.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					      .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}},
		 EINVAL);
	expect_refusal(QP_DC_TYPE, "mlx5dv_create_qp → EINVAL: dc_type %d does not go with a QP of type RC",
		       MLX5DV_DCTYPE_DCI);
}

RULE_CASE(QP_TYPE_UNKNOWN)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair.client.cq, .recv_cq = pair.client.cq, .qp_type = 99};

	errno = 0;
	assert_null(ibv_create_qp(client.pd, &attr));
	expect_error(errno, EINVAL);
	expect_refusal(QP_TYPE_UNKNOWN, "ibv_create_qp → EINVAL: qp_type 99 does not exist");
}

RULE_CASE(QP_TYPE)
{
	fails(attributes(IBV_QPT_RAW_PACKET), EOPNOTSUPP);
	expect_refusal(QP_TYPE, "ibv_create_qp → EOPNOTSUPP: this device does not offer QPs of type RAW_PACKET");
}

RULE_CASE(QP_RSS)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RAW_PACKET);

	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
	fails(attr, EOPNOTSUPP);
	expect_refusal(QP_RSS,
		       "ibv_create_qp_ex → EOPNOTSUPP: this device does not offer QPs over an indirection table");
}

RULE_CASE(QP_PD)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.pd = NULL;
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	fails(attr, EINVAL);
	expect_refusal(QP_PD,
		       "ibv_create_qp_ex → EINVAL: a QP of type RC was requested without a PD of the same context");
}

RULE_CASE(QP_CQ)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);

	attr.recv_cq = NULL;
	fails(attr, EINVAL);
	expect_refusal(
		QP_CQ,
		"ibv_create_qp → EINVAL: a QP of type UD was requested without send_cq and recv_cq of the same context");
}

static struct ibv_srq *create_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	assert_non_null(srq);
	return srq;
}

RULE_CASE(QP_SRQ)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UC);

	attr.srq = create_srq(client.pd);
	fails(attr, EINVAL);
	expect_refusal(QP_SRQ, "ibv_create_qp → EINVAL: a QP of type UC cannot have an SRQ");
	attr.qp_type = IBV_QPT_XRC_SEND;
	fails(attr, EINVAL);
	expect_refusal(QP_SRQ, "ibv_create_qp → EINVAL: a QP of type XRC_SEND cannot have an SRQ");
	expect_error(ibv_destroy_srq(attr.srq), 0);
}

RULE_CASE(QP_SRQ_KIND)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct ibv_xrcd_init_attr domain = {.comp_mask = 3, .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(client.context, &domain);
	struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 1, .max_sge = 1},
					   .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
							IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					   .srq_type = IBV_SRQT_XRC,
					   .pd = client.pd,
					   .xrcd = xrcd,
					   .cq = pair.client.cq};

	attr.srq = ibv_create_srq_ex(client.context, &srq);
	assert_non_null(attr.srq);
	fails(attr, EINVAL);
	expect_refusal(
		QP_SRQ_KIND,
		"ibv_create_qp → EINVAL: the SRQ for a QP of type RC belongs to another context or is not of the kind that the QP needs");
	expect_error(ibv_destroy_srq(attr.srq), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

RULE_CASE(QP_SEND_OPS)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
	fails(attr, EOPNOTSUPP);
	expect_refusal(QP_SEND_OPS,
		       "ibv_create_qp_ex → EOPNOTSUPP: send_ops_flags 0x%x are not operations of a QP of type UD",
		       IBV_QP_EX_WITH_RDMA_READ);
}

RULE_CASE(QP_MAX_SEND_SGE)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.cap.max_send_sge = 53;
	fails(attr, EINVAL);
	expect_refusal(QP_MAX_SEND_SGE,
		       "ibv_create_qp → EINVAL: max_send_sge 53 exceeds %d: other segments take %d bytes of the WQE",
		       (DESC_MAX - UMR_OVERHEAD) / 16, UMR_OVERHEAD);
}

RULE_CASE(QP_MAX_INLINE)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.cap.max_inline_data = 2000;
	fails(attr, EINVAL);
	expect_refusal(
		QP_MAX_INLINE,
		"ibv_create_qp → EINVAL: max_inline_data 2000 exceeds %d: other segments take %d bytes of the WQE",
		DESC_MAX - UMR_OVERHEAD - 4, UMR_OVERHEAD);
}

/* mlx5-formats 4.1: 192 bytes and an SGE make WQEs of 256; 20000 of them are 80000 blocks, 131072 as a power of two. */
RULE_CASE(QP_MAX_SEND_WR)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.cap.max_send_wr = 20000;
	fails(attr, EINVAL);
	expect_refusal(
		QP_MAX_SEND_WR,
		"ibv_create_qp → EINVAL: max_send_wr 20000 with WQEs of 256 bytes takes 131072 blocks of 64 bytes, "
		"more than %d",
		MAX_BLOCKS);
}

RULE_CASE(QP_MAX_RECV_WR)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.cap.max_recv_wr = 32769;
	fails(attr, EINVAL);
	expect_refusal(QP_MAX_RECV_WR, "ibv_create_qp → EINVAL: max_recv_wr 32769 exceeds 32768");
}

RULE_CASE(QP_MAX_RECV_SGE)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.cap.max_recv_sge = 33;
	fails(attr, EINVAL);
	expect_refusal(QP_MAX_RECV_SGE, "ibv_create_qp → EINVAL: max_recv_sge 33 exceeds 32");
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

RULE_CASE(QP_ATTR_MASK)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT, &init), EOPNOTSUPP);
	expect_about_qp(QP_ATTR_MASK, pair.client.qp->qp_num,
			" ibv_query_qp → EOPNOTSUPP: attr_mask has bits 0x%x that this call does not take",
			IBV_QP_RATE_LIMIT);
}

RULE_CASE(QP_RATE_LIMIT)
{
	struct ibv_qp_rate_limit_attr attr = {.rate_limit = 4321};

	expect_error(ibv_modify_qp_rate_limit(pair.client.qp, &attr), EOPNOTSUPP);
	expect_about_qp(QP_RATE_LIMIT, pair.client.qp->qp_num,
			" ibv_modify_qp_rate_limit → EOPNOTSUPP: this device does not offer pacing to 4321 kbit/s");
}

RULE_CASE(ECE_VENDOR)
{
	struct ibv_ece ece = {.vendor_id = 0x1234};

	expect_error(ibv_set_ece(pair.client.qp, &ece), EINVAL);
	expect_about_qp(ECE_VENDOR, pair.client.qp->qp_num,
			" ibv_set_ece → EINVAL: ECE options of vendor 0x1234 do not fit this device of vendor 0x15b3");
}

RULE_CASE(ECE_COMP_MASK)
{
	struct ibv_ece ece = {.vendor_id = VENDOR, .comp_mask = 1};

	expect_error(ibv_set_ece(pair.client.qp, &ece), EINVAL);
	expect_about_qp(ECE_COMP_MASK, pair.client.qp->qp_num,
			" ibv_set_ece → EINVAL: comp_mask 0x1 of struct ibv_ece is not 0");
}

/* The explanation is made in the child. */
RULE_CASE(QP_OF_PARENT)
{
	struct softhca_explanation *newest =
		mmap(NULL, sizeof(*newest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_send_wr *bad, wr = request(IBV_WR_SEND, BYTES);
	uint32_t number = pair.client.qp->qp_num;
	int status;
	pid_t child;

	assert_ptr_not_equal(newest, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(ibv_post_send(pair.client.qp, &wr, &bad) != EBADF ||
		      softhca_explanations(client.context, 0, newest, 1) != 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	expect_explanation(
		newest, QP_OF_PARENT,
		" qp 0x%x ibv_post_send wr_id %d → EBADF: queue pair 0x%x was created before fork(2), by the parent "
		"process: in the child it can only be queried and destroyed",
		number, WR_ID, number);
	munmap(newest, sizeof(*newest));
}
