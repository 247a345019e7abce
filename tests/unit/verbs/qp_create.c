/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creating and destroying QPs: refusals with their reasons (mlx5-formats 4.1, 4.2, 4.11), arguments of the device, order
 * of destruction, and no leftovers after a failure half-way.
 */
#include "../support/qp_fixture.h"

static void refused_dv(struct ibv_qp_init_attr_ex attr, struct mlx5dv_qp_init_attr *dv, int err, enum explain_rule rule)
{
	struct ibv_qp_cap cap = attr.cap;

	errno = 0;
	device.rule = RULE_NONE;
	assert_null(user_qp_create(program, &attr, dv));
	assert_int_equal(errno, err);
	assert_int_equal(device.rule, rule);
	assert_memory_equal(&attr.cap, &cap, sizeof(cap));
	assert_string_equal(around.log, "");
}

static void refused(struct ibv_qp_init_attr_ex attr, int err, enum explain_rule rule)
{
	refused_dv(attr, NULL, err, rule);
}

TEST(bad_attributes)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.comp_mask |= 1 << 20;
	refused(attr, EINVAL, RULE_QP_COMP_MASK);

	attr = attributes(IBV_QPT_UD);
	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	refused(attr, EINVAL, RULE_QP_TSO_HEADER);

	attr = attributes(IBV_QPT_RAW_PACKET);
	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	refused(attr, EINVAL, RULE_QP_NO_SEND_QUEUE);
	attr.comp_mask = IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE;
	refused(attr, EOPNOTSUPP, RULE_QP_RSS);

	attr = attributes(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SOURCE_QPN;
	refused(attr, EINVAL, RULE_QP_SOURCE_QPN);
	attr.qp_type = IBV_QPT_UD;
	refused(attr, EOPNOTSUPP, RULE_QP_CREATE_FLAGS);
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	refused(attr, EINVAL, RULE_QP_CREATE_FLAGS);
	attr.create_flags = 1 << 30;
	refused(attr, EINVAL, RULE_QP_CREATE_FLAGS);

	attr = attributes((enum ibv_qp_type)1);
	refused(attr, EINVAL, RULE_QP_TYPE_UNKNOWN);
	refused(attributes(IBV_QPT_RAW_PACKET), EOPNOTSUPP, RULE_QP_TYPE);
	refused(attributes(IBV_QPT_XRC_RECV), EINVAL, RULE_QP_XRCD);
	refused(attributes(IBV_QPT_DRIVER), EINVAL, RULE_QP_DC_TYPE);

	attr = attributes(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = 1 << 11; /* FLUSH, from later versions */
	refused(attr, EOPNOTSUPP, RULE_QP_SEND_OPS);
	attr = attributes(IBV_QPT_RC);
	attr.cap.max_send_wr = UINT32_MAX;
	refused(attr, EINVAL, RULE_QP_MAX_SEND_WR);
}

TEST(bad_objects)
{
	struct ibv_context *other = &other_context.verbs.context;
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

	attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	refused(attr, EINVAL, RULE_QP_PD);
	attr = attributes(IBV_QPT_RC);
	pd.base.context = other;
	refused(attr, EINVAL, RULE_QP_PD);
	pd.base.context = program;
	attr.send_cq = NULL;
	refused(attr, EINVAL, RULE_QP_CQ);
	attr = attributes(IBV_QPT_UD);
	attr.recv_cq = NULL;
	refused(attr, EINVAL, RULE_QP_CQ);
	attr = attributes(IBV_QPT_UD);
	recv_cq.base.context = other;
	refused(attr, EINVAL, RULE_QP_CQ);
	recv_cq.base.context = program;

	/* ibv_create_qp(3), NOTES: RC and UD only */
	attr = attributes(IBV_QPT_UC);
	attr.srq = &srq.base;
	refused(attr, EINVAL, RULE_QP_SRQ);
	attr.qp_type = IBV_QPT_RC;
	srq.type = IBV_SRQT_XRC;
	refused(attr, EINVAL, RULE_QP_SRQ_KIND);
	srq.type = IBV_SRQT_BASIC;
	srq.base.context = other;
	refused(attr, EINVAL, RULE_QP_SRQ_KIND);
}

TEST(dv_attributes)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct mlx5dv_qp_init_attr dv = {.comp_mask = 1 << 4};
	static const uint32_t taken[] = {0, 0x8, 0x10, 0x40, 0x48};
	static const struct {
		uint32_t flags;
		int err;
		enum explain_rule rule;
	} bad[] = {
		{0x18, EINVAL, RULE_QP_DV_SCATTER_FLAGS},
		{0x80, EINVAL, RULE_QP_DV_CREATE_FLAGS},
		{0x01, EINVAL, RULE_QP_DV_CREATE_FLAGS}, /* tunnels: raw packets */
		{0x20, EOPNOTSUPP, RULE_QP_DV_CREATE_FLAGS},
	};

	refused_dv(attr, &dv, EINVAL, RULE_QP_DV_COMP_MASK);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
	dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
	refused_dv(attr, &dv, EINVAL, RULE_QP_DC_TYPE);
	attr.qp_type = IBV_QPT_DRIVER;
	dv.dc_init_attr.dc_type = 3;
	refused_dv(attr, &dv, EINVAL, RULE_QP_DC_TYPE);
	dv.comp_mask = 0;
	refused_dv(attr, &dv, EINVAL, RULE_QP_DC_TYPE);

	attr = attributes(IBV_QPT_RC);
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		dv.create_flags = bad[i].flags;
		refused_dv(attr, &dv, bad[i].err, bad[i].rule);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		dv.create_flags = taken[i];
		destroy(create(&attr, &dv));
		around.log[0] = 0;
		/* Signature pipelining. */
		assert_int_equal(around.created.stop_at_signature_error, taken[i] >> 6);
	}
	/* The table of the mlx5 builders applies as well. */
	dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
	dv.send_ops_flags = 1 << 5;
	refused_dv(attr, &dv, EOPNOTSUPP, RULE_NONE);
}

TEST(created_attributes)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	const struct hca_qp_attr *told = &around.created;
	struct user_qp *qp;

	attr.sq_sig_all = 1;
	qp = create(&attr, NULL);
	/* 16 WRs of 192 + 32 = 256 bytes; 5 receives of 3 SGEs: 8 of 4 */
	assert_int_equal(attr.cap.max_send_wr, 16);
	assert_int_equal(attr.cap.max_recv_wr, 8);
	assert_int_equal(attr.cap.max_send_sge, 2);
	assert_int_equal(attr.cap.max_recv_sge, 4);
	assert_int_equal(attr.cap.max_inline_data, 60);

	assert_int_equal(qp->base.qp_num, TEST_QPN);
	assert_int_equal(qp->base.state, IBV_QPS_RESET);
	assert_int_equal(qp->base.qp_type, IBV_QPT_RC);
	assert_ptr_equal(qp->base.qp_context, &around);
	assert_ptr_equal(qp->base.context, program);
	assert_ptr_equal(qp->base.pd, &pd.base);
	assert_ptr_equal(qp->base.send_cq, &send_cq.base);
	assert_ptr_equal(qp->base.recv_cq, &recv_cq.base);
	assert_null(qp->base.srq);
	assert_int_equal(pd.references, 1);
	assert_false(qp->sq.lock.elided);

	/* One buffer, the RQ first (mlx5-formats 1.1). */
	assert_ptr_equal(told->rq_buffer, qp->buffer);
	assert_int_equal(told->rq_count, 8);
	assert_int_equal(told->rq_shift, 6);
	assert_ptr_equal(told->sq_buffer, (char *)qp->buffer + 512);
	assert_int_equal(told->sq_wqebb_count, 64);
	assert_int_equal(qp->buffer_size, 512 + 4096);
	assert_ptr_equal(told->dbrec, qp->dbrec);
	assert_int_equal(told->user_index, 77);
	assert_ptr_equal(told->cookie, qp);
	assert_int_equal(told->cap.max_inline_data, 60);
	qp->sq.wr_id[3] = 99;
	assert_int_equal(told->wr_id_of(told->cookie, 0x1003), 99);
	/* Without send_ops there is no extended QP. */
	assert_null(softhca_ibv_qp_to_qp_ex(&qp->base));
	destroy(qp);
}

TEST(srq_and_empty_queues)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_UD);
	struct user_qp *qp;

	attr.srq = &srq.base;
	attr.cap.max_send_wr = 0;
	around.single_threaded = true;
	qp = create(&attr, NULL);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(attr.cap.max_recv_sge, 0);
	assert_null(qp->buffer);
	assert_null(around.created.wr_id_of);
	assert_true(qp->sq.lock.elided);
	assert_true(qp->rq.lock.elided);
	assert_ptr_equal(qp->base.srq, &srq.base);
	destroy(qp);
}

TEST(legacy_call)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = &send_cq.base,
		.recv_cq = &recv_cq.base,
		.cap = {.max_send_wr = 3, .max_send_sge = 1},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = softhca_ibv_create_qp(&pd.base, &attr);

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, 4);
	assert_int_equal(attr.cap.max_inline_data, 60);
	destroy(to_user_qp(qp));
	attr.cap.max_send_sge = 1000;
	assert_null(softhca_ibv_create_qp(&pd.base, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(attr.cap.max_send_sge, 1000);
}

TEST(extended)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};
	struct user_qp *qp;

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = create(&attr, NULL);
	assert_ptr_equal(softhca_ibv_qp_to_qp_ex(&qp->base), &qp->ex);
	assert_int_equal(qp->sq.wqe_size, 64);     /* 16 + 32 */
	assert_non_null(qp->ex.wr_atomic_cmp_swp); /* all of the transport */
	destroy(qp);
	attr = attributes(IBV_QPT_RC);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = create(&attr, &dv);
	assert_int_equal(qp->sq.wqe_size, 256); /* 192 + 32 */
	assert_int_equal(qp->dv_send_ops, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE);
	destroy(qp);
}

/* After any failure, earlier steps are undone, and errno has the reason. */
TEST(failure_half_way)
{
	static const struct {
		const char *log;
		int err;
	} steps[] = {
		{"", ENOMEM},
		{"ring -ring ", ENOMEM},
		{"ring dbrec -dbrec -ring ", ENOMEM},
		{"ring dbrec index -index -dbrec -ring ", EAGAIN},
	};

	for (int i = 0; i < 4; i++) {
		struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);

		reset_all(NULL);
		around.fail_at = i + 1;
		errno = 0;
		assert_null(user_qp_create(program, &attr, NULL));
		assert_int_equal(errno, steps[i].err);
		assert_string_equal(around.log, steps[i].log);
		assert_int_equal(pd.references, 0);
		assert_int_equal(attr.cap.max_send_wr, 16);
	}
}

TEST(destruction)
{
	struct ibv_qp_init_attr_ex attr = attributes(IBV_QPT_RC);
	struct user_qp *qp = create(&attr, NULL);

	around.destroy_result = -EBUSY;
	assert_int_equal(softhca_ibv_destroy_qp(&qp->base), EBUSY);
	assert_string_equal(around.log, "");
	around.destroy_result = 0;
	destroy(qp);
	/* verbs/object/events.h */
	assert_string_equal(around.log, "-qp wait purge -index -dbrec -ring ");
}

int main(void)
{
	return run_cases(.setup = reset_all);
}
