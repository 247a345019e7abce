/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the consumer index that a program stores for a CQ: in 24 bits, as drivers do, or modulo the size of the ring, as NVSHMEM
 * does (docs/inside/decisions.md, Completion queues and shared receive queues). Covers a CQ made by command and one made by
 * verbs.
 */
#include "support/devx.h"

enum { BYTES = 64, LAPS = 3 };

static void write_own(struct own *own)
{
	own_request(own, MLX5_OPCODE_RDMA_WRITE, side_address(&client, 1024), client.mr->rkey, side_address(&client, 0),
		    BYTES, 0);
}

/* Consumes half a ring at a time, then one by one: the record passes 0 with CQEs pending, and with none. */
TEST(by_command)
{
	struct own own;
	uint32_t at_once = OWN_CQES / 2;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	for (uint32_t i = 0; i < LAPS * OWN_CQES; i += at_once) {
		at_once = i < OWN_CQES ? OWN_CQES / 2 : 1;
		for (uint32_t request = 0; request < at_once; request++)
			write_own(&own);
		for (uint32_t request = 0; request < at_once; request++) {
			assert_int_equal(own_next_cqe(&own).op_own >> 4, MLX5_CQE_REQ);
			put32(own.memory + OWN_CQ_RECORD, 0, own.consumed % OWN_CQES);
		}
	}
	memcpy(client.expected + 1024, client.memory, BYTES);
	side_compare(&client);
	own_close(&own);
}

TEST(of_verbs)
{
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj object = {.cq = {.in = pair.client.qp->send_cq, .out = &out}};
	struct ibv_sge sge = side_sge(&client, 0, BYTES);
	struct ibv_send_wr wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge, side_address(&server, 0), server.mr->rkey);
	uint32_t consumed;

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	consumed = be32toh(((volatile uint32_t *)out.dbrec)[0]) & 0xffffff;
	for (uint32_t i = 0; i < LAPS * out.cqe_cnt; i++) {
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, 0, IBV_WC_RDMA_WRITE);
		consumed++;
		((volatile uint32_t *)out.dbrec)[0] = htobe32(consumed % out.cqe_cnt);
	}
	memcpy(server.expected, client.memory, BYTES);
	side_compare(&server);
	/* Other code of this program stores 24 bits. */
	((volatile uint32_t *)out.dbrec)[0] = htobe32(consumed & 0xffffff);
}

/* mlx5dv_devx_obj_create(3): a QP by command uses the number of a CQ of ibv_create_cq(3). */
TEST(cq_by_number)
{
	struct ibv_cq *cq = ibv_create_cq(client.context, 8, NULL, NULL, 0);
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj object = {.cq = {.in = cq, .out = &out}};
	struct command command;
	struct own own;

	assert_non_null(cq);
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	own_open_cq(&own, &client);
	command = qp_command(&own, 0);
	put32(command.in, 148, out.cqn);
	put32(command.in, 180, out.cqn);
	own.qp = create(client.context, &command, 272);
	assert_non_null(own.qp);
	own.qpn = created_number(&command);
	own_connect(&own, &own);
	for (uint32_t i = 0; i < LAPS * out.cqe_cnt; i++) {
		const struct mlx5_cqe64 *cqe =
			(const struct mlx5_cqe64 *)((const uint8_t *)out.buf +
						    (size_t)(i % out.cqe_cnt + 1) * out.cqe_size - 64);
		uint8_t expected = (uint8_t)(MLX5_CQE_REQ << 4 | !!(i & out.cqe_cnt));
		double deadline = seconds_now() + 20;

		write_own(&own);
		while (__atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE) != expected)
			assert_true(seconds_now() < deadline);
		assert_int_equal(be32toh(cqe->sop_drop_qpn) & 0xffffff, own.qpn);
		((volatile uint32_t *)out.dbrec)[0] = htobe32((i + 1) & 0xffffff);
	}
	memcpy(client.expected + 1024, client.memory, BYTES);
	/* The CQ is in use. */
	expect_error(ibv_destroy_cq(cq), EBUSY);
	own_close(&own);
	expect_error(ibv_destroy_cq(cq), 0);
}
