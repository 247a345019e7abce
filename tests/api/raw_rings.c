/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that drives the rings itself, as drivers in user space do: WQEs, receives, arming and polling through the
 * members that mlx5dv_init_obj(3) returns, without a verbs call in between (mlx5-formats 1.16, 2.1, 3.1, 3.6).
 * Malformed WQEs lead to an error CQE and a QP in ERR, and the process continues.
 */
#include "test_clock.h"
#include "support/program.h"
#include "support/rings.h"

#include <poll.h>

enum { BYTES = 64, ARM_SN_SHIFT = 28 };

static void write_by_hand(struct rings *rings, size_t from, size_t to)
{
	uint8_t *wqe = rings_next_wqe(rings);
	struct mlx5_wqe_raddr_seg *address = (void *)(wqe + RING_UNIT);

	rings_put_control(rings, wqe, MLX5_OPCODE_RDMA_WRITE, 3);
	address->raddr = htobe64(side_address(rings->endpoint->peer->side, to));
	address->rkey = htobe32(rings->endpoint->peer->side->mr->rkey);
	address->reserved = 0;
	mlx5dv_set_data_seg((void *)(wqe + 2 * RING_UNIT), BYTES, rings->endpoint->side->mr->lkey,
			    side_address(rings->endpoint->side, from));
	rings_ring(rings, 1, RING_DOORBELL);
}

static void model_write(size_t from, size_t to)
{
	struct view source = view_memory(&client, from, BYTES), target = view_memory(&server, to, BYTES);

	model_copy(&source, &target);
}

/* ---- by hand ------------------------------------------------------------------------------------------------ */

/* More than a lap of both rings, with pauses during which the device polls less often. */
TEST(requests_and_completions)
{
	struct rings rings = rings_open(&pair.client);

	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 600; i++) {
		size_t from = i % 100 * BYTES, to = i % 90 * BYTES;
		struct mlx5_cqe64 cqe;

		note("request %u", i);
		if (i % 100 == 50)
			sleep_ms(20);
		write_by_hand(&rings, from, to);
		cqe = rings_next_cqe(&rings);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ);
		assert_int_equal(be32toh(cqe.sop_drop_qpn),
				 (uint32_t)MLX5_OPCODE_RDMA_WRITE << 24 | pair.client.qp->qp_num);
		assert_int_equal(be16toh(cqe.wqe_counter), i & 0xffff);
		model_write(from, to);
		side_compare(&server);
	}
	expect_state(&pair.client, IBV_QPS_RTS);
}

/* Receives written to the ring take the peer's ordinary SENDs. */
TEST(receives)
{
	struct rings rings = rings_open(&pair.server);
	struct ibv_sge sge = side_sge(&client, 0, BYTES);
	struct ibv_send_wr send = {
		.wr_id = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};

	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 200; i++) {
		struct mlx5_cqe64 cqe;

		rings_receive(&rings, side_address(&server, i * BYTES), BYTES, server.mr->lkey);
		post_send(&pair.client, &send);
		expect_completion(&pair.client, 3, IBV_WC_SEND);
		cqe = rings_next_cqe(&rings);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND);
		assert_int_equal(be32toh(cqe.byte_cnt), BYTES);
		model_write(0, i * BYTES);
		side_compare(&server);
	}
}

/* The arm word, then the register; the event comes through the completion channel. */
TEST(arming)
{
	struct pair_options options = pair.options;
	struct rings rings;
	void *context;

	options.channel = true;
	pair_replace(&pair, &options);
	rings = rings_open(&pair.client);
	for (uint32_t sn = 0; sn < 6; sn++) {
		struct pollfd fd = {.fd = pair.client.channel->fd, .events = POLLIN};
		struct ibv_cq *cq;
		uint32_t word;

		note("arming %u", sn);
		write_by_hand(&rings, 0, 0);
		rings_next_cqe(&rings);
		assert_int_equal(poll(&fd, 1, 20), 0); /* not armed */
		word = (sn & 3) << ARM_SN_SHIFT | (rings.consumer & 0xffffff);
		__atomic_store_n(&rings.cq.dbrec[1], htobe32(word), __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)((uint8_t *)rings.cq.cq_uar + MLX5_CQ_DOORBELL),
				 htobe64((uint64_t)word << 32 | rings.cq.cqn), __ATOMIC_RELEASE);
		write_by_hand(&rings, 0, 0);
		assert_int_equal(poll(&fd, 1, DEADLINE_SECONDS * 1000), 1);
		expect_error(ibv_get_cq_event(pair.client.channel, &cq, &context), 0);
		assert_ptr_equal(cq, pair.client.cq);
		ibv_ack_cq_events(cq, 1);
		rings_next_cqe(&rings);
	}
	model_write(0, 0);
}

/* Requests announced by a register write are flushed too, and a QP can be destroyed while it is polled. */
TEST(rung_in_error)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct rings rings = rings_open(&pair.client);

	expect_error(ibv_modify_qp(pair.client.qp, &error, IBV_QP_STATE), 0);
	for (uint32_t i = 0; i < 5; i++) {
		struct mlx5_cqe64 cqe;

		write_by_hand(&rings, 0, 0);
		cqe = rings_next_cqe(&rings);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
		assert_int_equal(((struct mlx5_err_cqe *)&cqe)->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
	write_by_hand(&rings, 0, 0);
	pair_renew(&pair);
}

/* ---- malformed WQEs ----------------------------------------------------------------------------------------- */

/* @units of 16 bytes in the control segment, @blocks announced by the doorbell; @fill sets the rest of the WQE. */
static const struct malformed {
	const char *what;
	uint8_t opcode, units, blocks;
	uint32_t words[12]; /* from byte 16 on */
} malformed[] = {
	{"an opcode that there is not", 0x3f, 1, 1, {0}},
	{"no length", MLX5_OPCODE_RDMA_WRITE, 0, 1, {0}},
	{"a WRITE without an address", MLX5_OPCODE_RDMA_WRITE, 1, 1, {0}},
	{"longer than what was rung", MLX5_OPCODE_SEND, 63, 1, {0}},
	{"an atomic without operands", MLX5_OPCODE_ATOMIC_FA, 2, 1, {0}},
	{"inline data beyond the end", MLX5_OPCODE_SEND, 2, 1, {0x800003ff}},
	{"inline data of 2 GiB", MLX5_OPCODE_SEND, 2, 1, {0xffffffff}},
	{"a UMR that is cut off", MLX5_OPCODE_UMR, 4, 1, {0x90000000}},
	{"a UMR with more entries than it has room for", MLX5_OPCODE_UMR, 8, 2, {0x90000fff}},
	{"a SET_PSV", MLX5_OPCODE_SET_PSV, 2, 1, {0}},
	{"a packet for an Ethernet queue", MLX5_OPCODE_TSO, 4, 1, {0}},
};

static void run_malformed(const struct malformed *bad)
{
	struct rings rings = rings_open(&pair.client);
	uint8_t *wqe = rings_next_wqe(&rings);
	struct mlx5_cqe64 cqe;

	note("%s", bad->what);
	memset(wqe, 0, (size_t)bad->blocks * RING_BLOCK);
	rings_put_control(&rings, wqe, bad->opcode, bad->units);
	for (int i = 0; i < 12; i++)
		((uint32_t *)(wqe + RING_UNIT))[i] = htobe32(bad->words[i]);
	rings_ring(&rings, bad->blocks, RING_DOORBELL);
	write_by_hand(&rings, 0, 0); /* must not be executed */
	cqe = rings_next_cqe(&rings);
	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_not_equal(((struct mlx5_err_cqe *)&cqe)->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_int_not_equal(((struct mlx5_err_cqe *)&cqe)->vendor_err_synd, 0);
	assert_int_equal(be16toh(cqe.wqe_counter), 0);
	expect_state(&pair.client, IBV_QPS_ERR);
	side_compare(&server);
	pair_renew(&pair);
}

TEST(malformed_requests)
{
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
		run_malformed(&malformed[i]);
}

/* Random bytes in the ring and in the doorbell record. */
TEST(noise)
{
	uint32_t random = 1;

	side_compare(&client);
	for (int round = 0; round < 30; round++) {
		struct rings rings = rings_open(&pair.client);
		uint8_t *ring_bytes = rings.qp.sq.buf;

		for (uint32_t i = 0; i < rings.qp.sq.wqe_cnt * RING_BLOCK; i++) {
			random = random * 1664525 + 1013904223;
			ring_bytes[i] = (uint8_t)(random >> 24);
		}
		/* Sometimes more than the ring holds. */
		rings.producer = random % (2 * rings.qp.sq.wqe_cnt) + 1;
		__atomic_store_n(&rings.qp.dbrec[MLX5_SND_DBR], htobe32(rings.producer), __ATOMIC_RELEASE);
		note("round %d", round);
		assert_int_equal(rings_next_cqe(&rings).op_own >> 4, MLX5_CQE_REQ_ERR);
		pair_renew(&pair);
	}
	/* The random keys do not exist, so memory is unchanged. */
	side_compare(&client);
	side_compare(&server);
}
