/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creating DCIs and DCTs (mlx5dv_create_qp(3)): refusals with their reasons (libmlx5, the kernel's mlx5 driver),
 * arguments of the device, results for the program.
 */
#include "../support/qp_fixture.h"

#include "core/limits.h"

static struct mlx5dv_qp_init_attr dc(enum mlx5dv_dc_type type)
{
	return (struct mlx5dv_qp_init_attr){.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC, .dc_init_attr.dc_type = type};
}

static struct ibv_qp_init_attr_ex dct_attributes(void)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_DRIVER);

	attr.srq = &srq.base;
	return attr;
}

static struct ibv_qp_init_attr_ex dci_attributes(void)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_DRIVER);

	attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	return attr;
}

static void refused(struct ibv_qp_init_attr_ex attr, struct mlx5dv_qp_init_attr dv, int err, enum explain_rule rule)
{
	errno = 0;
	device.rule = RULE_NONE;
	assert_null(user_qp_create(program, &attr, &dv));
	assert_int_equal(errno, err);
	assert_int_equal(device.rule, rule);
	assert_string_equal(around.log, "");
}

TEST(bad_targets)
{
	static const uint32_t flags[] = {MLX5DV_QP_CREATE_TUNNEL_OFFLOADS, MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE};
	struct mlx5dv_qp_init_attr dv = dc(MLX5DV_DCTYPE_DCT);
	struct ibv_qp_init_attr_ex attr = dct_attributes();

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	refused(attr, dv, EINVAL, RULE_QP_NO_SEND_QUEUE);
	attr = dct_attributes();
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	refused(attr, dv, EINVAL, RULE_QP_DCT_ATTR);
	attr = dct_attributes();
	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
	refused(attr, dv, EINVAL, RULE_QP_DCT_ATTR);
	dv = dc(MLX5DV_DCTYPE_DCT);
	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	refused(attr, dv, EINVAL, RULE_QP_DCT_ATTR);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		dv = dc(MLX5DV_DCTYPE_DCT);
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
		dv.create_flags = flags[i];
		refused(attr, dv, EINVAL, RULE_QP_DV_CREATE_FLAGS);
	}

	dv = dc(MLX5DV_DCTYPE_DCT);
	attr.srq = NULL;
	refused(attr, dv, EINVAL, RULE_QP_DCT_SRQ);
	attr = dct_attributes();
	srq.type = IBV_SRQT_XRC;
	refused(attr, dv, EINVAL, RULE_QP_SRQ_KIND);
	srq.type = IBV_SRQT_BASIC;
	attr.recv_cq = NULL;
	refused(attr, dv, EINVAL, RULE_QP_CQ);
	attr = dct_attributes();
	attr.comp_mask = 0;
	refused(attr, dv, EINVAL, RULE_QP_PD);
}

/* Neither queue nor number, and unchanged capabilities. */
TEST(target)
{
	struct ibv_qp_init_attr_ex attr = dct_attributes();
	struct mlx5dv_qp_init_attr dv = dc(MLX5DV_DCTYPE_DCT);
	const struct ibv_qp_cap cap = attr.cap;
	struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND};
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = 0};
	struct user_qp *qp;

	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	dv.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
	dv.dc_init_attr.dct_access_key = UINT64_C(0x0123456789abcdef);
	qp = create(&attr, &dv);
	assert_int_equal(around.created.type, QP_TYPE_DCT);
	assert_int_equal(around.created.dc_access_key, UINT64_C(0x0123456789abcdef));
	assert_int_equal(around.created.sq_wqebb_count, 0);
	assert_int_equal(around.created.rq_count, 0);
	assert_ptr_equal(around.created.srq, srq.device);
	assert_memory_equal(&attr.cap, &cap, sizeof(cap));
	assert_int_equal(qp->base.qp_num, 0);
	assert_int_equal(qp->base.qp_type, IBV_QPT_DRIVER);
	assert_null(softhca_ibv_qp_to_qp_ex(&qp->base));
	/* ibv_post_send(3), ibv_post_recv(3): there is no queue to post to. */
	assert_int_equal(softhca_ibv_post_send(&qp->base, &send, &bad_send), ENOMEM);
	assert_int_not_equal(softhca_ibv_post_recv(&qp->base, &recv, &bad_recv), 0);

	assert_int_equal(
		softhca_ibv_modify_qp(&qp->base, &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT}, IBV_QP_STATE), 0);
	assert_int_equal(qp->base.qp_num, 0);
	assert_int_equal(softhca_ibv_modify_qp(&qp->base, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, IBV_QP_STATE),
			 0);
	assert_int_equal(qp->base.qp_num, TEST_QPN);
	destroy(qp);
}

TEST(bad_initiators)
{
	struct ibv_qp_init_attr_ex attr = dci_attributes();
	struct mlx5dv_qp_init_attr dv = dc(MLX5DV_DCTYPE_DCI);

	attr.cap.max_recv_wr = 1;
	refused(attr, dv, EINVAL, RULE_QP_DCI_RECEIVES);
	attr = dci_attributes();
	attr.cap.max_recv_sge = 1;
	refused(attr, dv, EINVAL, RULE_QP_DCI_RECEIVES);

	attr = dci_attributes();
	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	dv.dc_init_attr.dci_streams.log_num_concurent = LIMIT_LOG_DCI_STREAMS + 1;
	refused(attr, dv, EINVAL, RULE_QP_DCI_STREAMS);
	dv.dc_init_attr.dci_streams.log_num_concurent = 0;
	dv.dc_init_attr.dci_streams.log_num_errored = LIMIT_LOG_DCI_ERRORED + 1;
	refused(attr, dv, EINVAL, RULE_QP_DCI_STREAMS);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	dv = dc(MLX5DV_DCTYPE_DCI);
	refused(attr, dv, EOPNOTSUPP, RULE_QP_SEND_OPS);
}

/* ibv_create_qp_ex(3) and the sizes of mlx5-formats 4.1: 48 bytes of address vector in each WQE. */
TEST(initiator)
{
	struct ibv_qp_init_attr_ex attr = dci_attributes();
	struct mlx5dv_qp_init_attr dv = dc(MLX5DV_DCTYPE_DCI);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct user_qp *qp;

	attr.cap.max_send_sge = 1;
	/* A driver reads the key of a DCT from the place of the streams: without their bit there are no streams. */
	dv.dc_init_attr.dct_access_key = UINT64_MAX;
	qp = create(&attr, &dv);
	assert_int_equal(around.created.type, QP_TYPE_DCI);
	assert_int_equal(around.created.dci_errored_streams, 0);
	/* All operations: 192 and 48 before the data, 16 bytes of data, in blocks of 64. */
	assert_int_equal(attr.cap.max_inline_data, 256 - 240 - 4);
	assert_int_equal(qp->base.qp_num, TEST_QPN);
	assert_int_equal(qp->sq.address_bytes, 48);
	assert_int_equal(softhca_ibv_post_send(&qp->base, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(device.rule, RULE_SEND_ON_DCI);
	destroy(qp);

	attr = dci_attributes();
	attr.cap.max_send_sge = 1;
	attr.srq = &srq.base; /* typical use */
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	dv = dc(MLX5DV_DCTYPE_DCI);
	dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
	dv.dc_init_attr.dci_streams.log_num_concurent = LIMIT_LOG_DCI_STREAMS;
	dv.dc_init_attr.dci_streams.log_num_errored = LIMIT_LOG_DCI_ERRORED;
	qp = create(&attr, &dv);
	assert_int_equal(around.created.dci_errored_streams, 1 << LIMIT_LOG_DCI_ERRORED);
	assert_int_equal(attr.cap.max_inline_data, 128 - 32 - 48 - 4);
	assert_ptr_equal(softhca_ibv_qp_to_qp_ex(&qp->base), &qp->ex);
	destroy(qp);
}

/* The kernel's driver: a DCT can be queried in RTR, for the attributes that it has. */
TEST(query)
{
	struct ibv_qp_init_attr_ex attr = dct_attributes();
	struct mlx5dv_qp_init_attr dv = dc(MLX5DV_DCTYPE_DCT);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr found;
	struct user_qp *qp = create(&attr, &dv);

	device.rule = RULE_NONE;
	assert_int_equal(softhca_ibv_query_qp(&qp->base, &found, IBV_QP_STATE, &init), EINVAL);
	assert_int_equal(device.rule, RULE_QP_QUERY_DCT);
	destroy(qp);
}

int main(void)
{
	return run_cases(.setup = reset_all);
}
