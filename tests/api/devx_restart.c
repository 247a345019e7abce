/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests queue pairs that are reset and reused at once. A driver may clear the doorbell record at RESET, so that its value
 * repeats, or leave the old value there until it posts again (UCX, for a DCI). An adapter reads the record when a doorbell is
 * rung.
 */
#include "support/devx.h"

enum { LIVES = 1000 };

static void nothing(struct own *own)
{
	uint8_t wqe[16] = {0};

	put32(wqe, 8, 8);
	own_post(own, MLX5_OPCODE_NOP, wqe, sizeof(wqe));
	assert_int_equal(own_next_cqe(own).op_own >> 4, MLX5_CQE_REQ);
}

TEST(same_count_again)
{
	struct command reset = command_of(0x50a);
	struct own own;

	own_open(&own, &client, 0);
	for (uint32_t life = 0; life < LIVES; life++) {
		own_connect(&own, &own);
		nothing(&own);
		assert_int_equal(own_modify(&own, &reset, 16), 0);
		own.requests = 0;
		put32(own.memory + OWN_QP_RECORD, 4, 0);
	}
	own_close(&own);
}

static void reset(struct own *own)
{
	struct command command = command_of(0x50a);

	assert_int_equal(own_modify(own, &command, 16), 0);
	/* Clear the requests of before the reset. */
	memset(own->memory + OWN_REQUESTS, 0, OWN_BLOCKS * 64);
	own->requests = 0;
	own_connect(own, own);
}

static void expect_silence(const struct own *own)
{
	/* Longer than the interval at which the device polls records that no doorbell announces (src/progress/DESIGN.md). */
	const struct timespec time = {.tv_nsec = 60000000};

	nanosleep(&time, NULL);
	assert_false(own_has_cqe(own));
}

TEST(record_left_as_it_was)
{
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	nothing(&own);
	nothing(&own);
	reset(&own);
	expect_silence(&own);
	/* The first request announces 1, while the record has 2. */
	nothing(&own);
	nothing(&own);
	expect_silence(&own);
	own_close(&own);
}

/* After RESET, the first request sets the record to the value that it still has. */
TEST(record_repeated)
{
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	nothing(&own);
	for (uint32_t life = 0; life < LIVES / 100; life++) {
		reset(&own);
		if (life % 2)
			expect_silence(&own);
		nothing(&own);
	}
	own_close(&own);
}

/* Stores the doorbell of request 0 of @own to a register of @uar, @at bytes from the start of its page. */
static void ring_through(const struct own *own, const struct mlx5dv_devx_uar *uar, size_t at)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)((uint8_t *)uar->base_addr + at) = htobe64((uint64_t)own->qpn << 8 | 1);
}

/*
 * A program with two UARs uses both registers of either one, while a UAR of another context has the doorbell of another queue
 * pair. The record repeats its value after each reset, so only the register shows that a request was posted.
 */
TEST(record_repeated_with_two_uars)
{
	struct ibv_context *other_context = open_device();
	struct mlx5dv_devx_uar *second = mlx5dv_devx_alloc_uar(client.context, MLX5DV_UAR_ALLOC_TYPE_BF);
	struct mlx5dv_devx_uar *other = mlx5dv_devx_alloc_uar(other_context, MLX5DV_UAR_ALLOC_TYPE_BF);
	struct own own, unrung;

	assert_non_null(other);
	assert_non_null(second);
	own_open(&own, &client, 0);
	own_open(&unrung, &client, 0);
	own_connect(&own, &own);
	own_connect(&unrung, &unrung);
	nothing(&own);
	nothing(&unrung);
	reset(&unrung);
	for (uint32_t life = 0; life < 4; life++) {
		const struct mlx5dv_devx_uar *uar = life % 2 ? second : own.uar;
		uint8_t *wqe = own.memory + OWN_REQUESTS;

		reset(&own);
		ring_through(&own, other, 0x20);
		expect_silence(&own);
		put32(wqe, 0, 0);
		put32(wqe, 4, own.qpn << 8 | 1);
		put32(wqe, 8, 8);
		put32(own.memory + OWN_QP_RECORD, 4, 1);
		own.requests = 1;
		ring_through(&own, uar, life < 2 ? 0x800 : 0x900);
		assert_int_equal(own_next_cqe(&own).op_own >> 4, MLX5_CQE_REQ);
		/* The doorbell of one queue pair does not start the other one, although its record is also stale. */
		assert_false(own_has_cqe(&unrung));
	}
	own_close(&unrung);
	own_close(&own);
	mlx5dv_devx_free_uar(second);
	mlx5dv_devx_free_uar(other);
	expect_error(ibv_close_device(other_context), 0);
}

/* Receives are posted in INIT, before the send queue may be used: their record does not validate that of the send queue. */
TEST(receives_do_not_ring)
{
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	nothing(&own);
	reset(&own);
	own_receive(&own, side_address(&client, 0), 64);
	expect_silence(&own);
	nothing(&own);
	own_close(&own);
}

/* The record has a value before the queue pair is created. */
TEST(record_before_creation)
{
	struct own own;

	own_open_cq(&own, &client);
	put32(own.memory + OWN_QP_RECORD, 4, 3);
	own_open_qp(&own, 0);
	own_connect(&own, &own);
	expect_silence(&own);
	nothing(&own);
	own_close(&own);
}

/* Writes the record of a verbs queue pair between RESET and RTS. */
TEST(record_of_verbs)
{
	struct ibv_qp *qp = pair.client.qp;
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj object = {.qp = {qp, &dv}};
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct ibv_wc wc;

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	assert_int_equal(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
	dv.dbrec[MLX5_SND_DBR] = htobe32(1);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
	assert_int_equal(ibv_poll_cq(qp->send_cq, 1, &wc), 0);
	ctrl = dv.sq.buf;
	mlx5dv_set_ctrl_seg(ctrl, 0, MLX5_OPCODE_NOP, 0, qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 1, 0, 0);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)dv.bf.reg = *(uint64_t *)ctrl;
	while (!ibv_poll_cq(qp->send_cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/*
 * The thread that polls records may read the value at any moment of the transition to RTS. A second queue pair rings doorbells
 * continuously to keep the thread awake.
 */
TEST(record_written_before_rts)
{
	struct ibv_qp *qp = pair.client.qp;
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj object = {.qp = {qp, &dv}};
	struct own own;
	struct ibv_wc wc;

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	mlx5dv_set_ctrl_seg(dv.sq.buf, 0, MLX5_OPCODE_NOP, 0, qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 1, 0, 0);
	own_open(&own, &client, 0);
	own_connect(&own, &own);
	for (uint32_t life = 0; life < LIVES; life++) {
		assert_int_equal(ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
		endpoint_to_init(&pair.client);
		endpoint_to_rtr(&pair.client);
		nothing(&own);
		for (volatile uint32_t wait = 0; wait < life % 64 * 16; wait++)
			;
		dv.dbrec[MLX5_SND_DBR] = htobe32(1);
		endpoint_to_rts(&pair.client);
		nothing(&own);
		assert_int_equal(ibv_poll_cq(qp->send_cq, 1, &wc), 0);
	}
	own_close(&own);
}
