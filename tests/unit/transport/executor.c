/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that no driver would write: doorbell records and WQEs that do not fit together. Each announced WQE ends in
 * exactly one CQE, in order (mlx5-formats 1.1, 3.4 and 6, points 46 and 47).
 */
#include "test_case.h"

#include "../support/device_fixture.h"

#include "core/epoch.h"
#include "transport/control/commands.h"
#include "transport/requester/requester.h"

static const struct ibv_qp_attr defaults = {.rnr_retry = 7, .retry_cnt = 7, .min_rnr_timer = 1};

/* A WQE of 16 blocks of which one is announced: the rest of the ring was never posted. */
TEST(wqe_beyond_the_doorbell)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	struct raw_cq cq;
	struct raw_qp end;

	raw_cq_make(&device, &cq, 256);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, 64);
	raw_qp_connect(&device, &end, end.qp->number, &defaults);
	ctrl = ctrl_segment(&end, MLX5_OPCODE_NOP, 63);
	put_wqe(&end, &ctrl, 1, 1);
	ring(&end);
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	assert_null(raw_cq_poll(&cq));
	put_nop(&end);
	ring(&end);
	expect_cqe(&cq, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_null(raw_cq_poll(&cq));
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
}

/* The CQ fills while the send queue of a datagram QP is flushed: SQE becomes ERR on the way (IBTA C11-39). */
TEST(completion_queue_full_while_flushing)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	struct raw_cq cq;
	struct raw_qp end;

	raw_cq_make(&device, &cq, 4);
	raw_qp_make(&device, &end, IBV_QPT_UD, &cq, 64);
	raw_qp_connect(&device, &end, 0, &defaults);
	ctrl = ctrl_segment(&end, MLX5_OPCODE_RDMA_READ, 1);
	put_wqe(&end, &ctrl, 1, 1);
	for (int i = 1; i < 10; i++)
		put_nop(&end);
	ring(&end);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_ERR);
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	for (uint16_t i = 1; i < 4; i++)
		expect_cqe(&cq, i, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_null(raw_cq_poll(&cq));
	/* The CQEs of 4 to 9 are lost; later requests have room again. */
	put_nop(&end);
	ring(&end);
	expect_cqe(&cq, 10, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_null(raw_cq_poll(&cq));
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
}

/* A program that posts over WQEs which have not completed: the device starts no more than the ring has room for. */
TEST(more_under_way_than_the_ring_holds)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct raw_cq cq;
	struct raw_qp end;

	raw_cq_make(&device, &cq, 256);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, 4);
	/* No QP has this number, and without a timeout the WRITEs wait forever. */
	raw_qp_connect(&device, &end, 0xfffff0, &defaults);
	for (int lap = 0; lap < 2; lap++) {
		for (int i = 0; i < 4; i++)
			put_rdma(&device, &end, MLX5_OPCODE_RDMA_WRITE, 0, 4096, 8);
		ring(&end);
	}
	assert_true(end.qp->requester.last - end.qp->requester.first <= 4);
	assert_int_equal(hca_qp_modify(end.qp, &error, IBV_QP_STATE), 0);
	for (uint16_t i = 0; i < 8; i++)
		expect_cqe(&cq, i, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_null(raw_cq_poll(&cq));
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
}

/* A class that the requester does not execute itself, as one that a new opcode brings and no code handles. */
TEST(class_that_no_code_executes)
{
	const struct wqe wqe = {
		.size = 16, .opcode = MLX5_OPCODE_SEND, .blocks = 1, .fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE};
	struct raw_cq cq;
	struct raw_qp end;

	raw_cq_make(&device, &cq, 4);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, 4);
	raw_qp_connect(&device, &end, end.qp->number, &defaults);
	/* Announced, but not executed by a doorbell. */
	put_nop(&end);
	__atomic_store_n(&end.dbrec[MLX5_SND_DBR], htobe32(end.posted), __ATOMIC_RELEASE);
	epoch_enter();
	queue_lock(&end.qp->lock);
	requester_start_local(end.qp, &wqe);
	queue_unlock(&end.qp->lock);
	epoch_leave();
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_ERR);
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_MW_BIND_ERR);
	assert_null(raw_cq_poll(&cq));
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
