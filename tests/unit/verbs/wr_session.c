/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The region between ibv_wr_start and ibv_wr_complete (ibv_wr_post(3), mlx5-formats 4.2): roll-back, missing and
 * unexpected setters, operations that the type does not support.
 */
#include "../support/posting_fixture.h"

static struct ibv_sge small[4] = {{0x1000, 8, 1}, {0x2000, 8, 1}, {0x3000, 8, 1}, {0x4000, 8, 1}};

static struct posting *rc_qp(uint32_t wrs)
{
	return posting_new(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = wrs, .max_send_sge = 3});
}

static void start(struct posting *p)
{
	device.rule = RULE_NONE;
	ibv_wr_start(&p->qp.ex);
	p->qp.ex.wr_flags = 0;
}

/* Expects the QP as it was at @before, with its lock free. */
static void rolled_back(struct posting *p, const struct send_queue *before)
{
	assert_int_equal(p->qp.sq.cur_post, before->cur_post);
	assert_int_equal(p->qp.sq.head, before->head);
	assert_int_equal(p->qp.sq.fence_cache, before->fence_cache);
	assert_int_equal(be32toh(p->dbrec[1]), before->cur_post & 0xffff);
	assert_int_equal(p->qp.sq.lock.held, 0);
}

TEST(rollback)
{
	struct posting *p = rc_qp(16);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_LOCAL_INV};
	struct send_queue before;
	unsigned int doorbells;

	/* The fence cache is restored as well. */
	assert_int_equal(softhca_ibv_post_send(&p->qp.base, &wr, &bad), 0);
	before = p->qp.sq;
	doorbells = device.send_doorbells;
	assert_int_equal(before.fence_cache, 0x20);

	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	ibv_wr_local_inv(&p->qp.ex, 1);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	ibv_wr_abort(&p->qp.ex);
	rolled_back(p, &before);

	/* An error anywhere drops the whole chain; the first error is reported. */
	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge_list(&p->qp.ex, 4, small);
	ibv_wr_atomic_write(&p->qp.ex, 1, 1, small);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), ENOMEM);
	assert_int_equal(device.rule, RULE_SEND_SGE_COUNT);
	rolled_back(p, &before);

	/* Not in RTS yet. */
	wr_set_state(&p->qp, IBV_QPS_RESET);
	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_BEFORE_RTS);
	rolled_back(p, &before);
	wr_set_state(&p->qp, IBV_QPS_INIT);
	wr_set_state(&p->qp, IBV_QPS_RTR);
	start(p);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	wr_set_state(&p->qp, IBV_QPS_RTS);
	wr_set_state(&p->qp, IBV_QPS_ERR);
	assert_int_equal(device.send_doorbells, doorbells);

	/* An empty chain rings no doorbell; the next one works, and inherits the fence. */
	start(p);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(device.send_doorbells, doorbells);
	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(device.send_doorbells, doorbells + 1);
	assert_int_equal(wqe_byte(p, before.cur_post, 11), 0x20);
	assert_int_equal(p->qp.sq.head, before.head + 1);
	posting_free(p);
}

/* All WRs of a chain count, under one doorbell. */
TEST(chain)
{
	struct posting *p = rc_qp(16);

	p->qp.sq.head = p->qp.sq.tail = 100;
	start(p);
	for (int i = 0; i < 3; i++) {
		p->qp.ex.wr_id = i;
		ibv_wr_send(&p->qp.ex);
		ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	}
	assert_int_equal(p->dbrec[1], 0);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(p->qp.sq.head, 103);
	assert_int_equal(be32toh(p->dbrec[1]), 3);
	assert_int_equal(device.send_doorbells, 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p->qp.sq.wr_id[i], i);
		assert_int_equal(p->qp.sq.wqe_head[i], 100 + i);
	}
	posting_free(p);
}

static void expect_refused(struct posting *p, uint16_t rule)
{
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, rule);
	device.rule = RULE_NONE;
	assert_int_equal(p->qp.sq.cur_post, 0);
	assert_int_equal(p->qp.sq.head, 0);
	assert_int_equal(device.send_doorbells, 0);
}

/* Profile man: an operation without its setter aborts the batch, at any position. */
TEST(missing_setter)
{
	struct posting *p = rc_qp(16);

	for (int place = 0; place < 2; place++) {
		start(p);
		for (int i = 0; i < 2; i++) {
			ibv_wr_rdma_write(&p->qp.ex, 1, 0x1000);
			if (i == place)
				ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
		}
		expect_refused(p, RULE_WR_DATA_MISSING);
	}
	posting_free(p);

	p = posting_new(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	expect_refused(p, RULE_WR_ADDRESS_MISSING);
	start(p);
	ibv_wr_send(&p->qp.ex);
	expect_refused(p, RULE_WR_DATA_MISSING);
	posting_free(p);

	p = posting_new(IBV_QPT_XRC_SEND, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	start(p);
	ibv_wr_rdma_read(&p->qp.ex, 1, 0x1000);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	expect_refused(p, RULE_WR_ADDRESS_MISSING);
	posting_free(p);
}

/* Profile connectx: such an operation is dropped, and the next one takes its place. */
TEST(missing_setter_of_connectx)
{
	struct posting *p = rc_qp(16);
	struct posting *ud;
	struct expected e;

	device.settings.profile = PROFILE_CONNECTX;
	start(p);
	p->qp.ex.wr_id = 1;
	ibv_wr_rdma_write(&p->qp.ex, 1, 0x1000);
	p->qp.ex.wr_id = 2;
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(device.rule, RULE_WR_DROPPED);
	device.rule = RULE_NONE;
	p->qp.ex.wr_id = 3;
	ibv_wr_send(&p->qp.ex);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(device.rule, RULE_WR_DROPPED);
	expect_ctrl(&e, 0, 0x0a, 0, 0);
	expect_pointer(&e, 8, 1, 0x1000);
	check_wqe(p, 0, &e);
	assert_int_equal(p->qp.sq.wr_id[0], 2);
	assert_int_equal(p->qp.sq.head, 1);
	posting_free(p);

	ud = posting_new(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	device.settings.profile = PROFILE_CONNECTX;
	start(ud);
	ibv_wr_send(&ud->qp.ex);
	ibv_wr_set_sge(&ud->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&ud->qp.ex), 0);
	assert_int_equal(ud->qp.sq.cur_post, 0);
	assert_int_equal(device.send_doorbells, 0);
	posting_free(ud);
}

TEST(unexpected_setter)
{
	struct posting *p = rc_qp(16);

	start(p);
	ibv_wr_set_sge(&p->qp.ex, 1, 0x1000, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	start(p);
	ibv_wr_local_inv(&p->qp.ex, 1);
	ibv_wr_set_sge_list(&p->qp.ex, 1, small);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	start(p);
	ibv_wr_send(&p->qp.ex);
	ibv_wr_set_inline_data(&p->qp.ex, small, 8);
	ibv_wr_set_inline_data(&p->qp.ex, small, 8);
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_SETTER_UNEXPECTED);
	assert_int_equal(p->qp.sq.cur_post, 0);
	posting_free(p);
}

/* A configuration with missing setters (mlx5dv/wr_mkey.c keeps it): the two profiles. */
TEST(missing_mkey_setter)
{
	struct posting *p = rc_qp(4);
	struct wqe wqe;

	start(p);
	assert_true(wr_begin(&p->qp, "test", MLX5_OPCODE_UMR, 0, 192, IBV_WC_DRIVER1, WR_SETTER_MKEY, &wqe));
	assert_int_equal(ibv_wr_complete(&p->qp.ex), EINVAL);
	assert_int_equal(device.rule, RULE_WR_SETTERS_MISSING);
	device.settings.profile = PROFILE_CONNECTX;
	start(p);
	assert_true(wr_begin(&p->qp, "test", MLX5_OPCODE_UMR, 0, 192, IBV_WC_DRIVER1, WR_SETTER_MKEY, &wqe));
	assert_int_equal(ibv_wr_complete(&p->qp.ex), 0);
	assert_int_equal(p->qp.sq.cur_post, 0);
	posting_free(p);
}

/* Operations that a type does not support are refused, not called through NULL. */
TEST(foreign_builders)
{
	struct posting *uc = posting_new(IBV_QPT_UC, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct posting *ud = posting_new(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = 1});
	struct ibv_qp_ex *ex = &uc->qp.ex;

#define REFUSED(call)                                                                                                  \
	start(user_container_of(ex, struct posting, qp.ex));                                                           \
	call;                                                                                                          \
	assert_int_equal(ibv_wr_complete(ex), EOPNOTSUPP);                                                             \
	assert_int_equal(device.rule, RULE_WR_NOT_OF_TYPE)

	REFUSED(ibv_wr_rdma_read(ex, 1, 2));
	REFUSED(ibv_wr_atomic_cmp_swp(ex, 1, 2, 3, 4));
	REFUSED(ibv_wr_atomic_fetch_add(ex, 1, 2, 3));
	REFUSED(ibv_wr_atomic_write(ex, 1, 8, ""));
	REFUSED(ibv_wr_set_ud_addr(ex, NULL, 1, 2));
	REFUSED(ibv_wr_set_xrc_srqn(ex, 1));
	REFUSED(ibv_wr_send_tso(ex, NULL, 0, 0));
	ex = &ud->qp.ex;
	REFUSED(ibv_wr_send_inv(ex, 1));
	REFUSED(ibv_wr_rdma_write(ex, 1, 2));
	REFUSED(ibv_wr_rdma_write_imm(ex, 1, 2, 3));
	REFUSED(ibv_wr_rdma_read(ex, 1, 2));
	REFUSED(ibv_wr_bind_mw(ex, NULL, 1, NULL));
	REFUSED(ibv_wr_local_inv(ex, 1));
#undef REFUSED
	posting_free(uc);
	posting_free(ud);
}

/* send_ops outside the set of the transport; FLUSH (bit 11 of later versions) for all. */
TEST(send_ops)
{
	struct posting *p = rc_qp(1);

	assert_int_equal(wr_table_fill(&p->qp, 1 << 11), -EOPNOTSUPP);
	assert_int_equal(device.rule, RULE_QP_SEND_OPS);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_TSO), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, UINT64_C(1) << 63), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, 0x3ff | IBV_QP_EX_WITH_ATOMIC_WRITE), 0);
	p->qp.type = IBV_QPT_UC;
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_RDMA_READ), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_ATOMIC_WRITE), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV), 0);
	p->qp.type = IBV_QPT_UD;
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_RDMA_WRITE), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_SEND_WITH_INV), -EOPNOTSUPP);
	assert_int_equal(wr_table_fill(&p->qp, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM), 0);
	posting_free(p);
}
