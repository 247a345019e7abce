/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the effects of an error: every remaining request completes with WR_FLUSH_ERR, in order, unsignalled ones too (IBTA
 * 10.3.1; mlx5-formats 6, point 47). Also tests recovery: SQE to RTS, and RESET followed by a new connection.
 */
#include "support/event.h"
#include "support/program.h"

enum { SENDS = 100, RECEIVES = 200, LONG_RNR = 0 /* 655 ms */ };

static void to_state(struct endpoint *endpoint, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	expect_error(ibv_modify_qp(endpoint->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(endpoint->qp->state, state);
}

static void post(struct endpoint *endpoint, enum ibv_wr_opcode opcode, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.send_flags = flags,
		.wr.rdma = {side_address(endpoint->peer->side, 0), endpoint->peer->side->mr->rkey},
	};

	post_send(endpoint, &wr);
}

static void expect_flushed(struct endpoint *endpoint, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		assert_int_not_equal(expect_status(endpoint, first + i, IBV_WC_WR_FLUSH_ERR).vendor_err, 0);
}

/* Checks that both queues of the endpoint have been flushed, each in order. */
static void expect_both_flushed(struct endpoint *endpoint, uint64_t sends, uint64_t receives)
{
	uint64_t sent = 0, received = 0;

	while (sent < sends || received < receives) {
		struct ibv_wc wc = next_completion(endpoint);

		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		if (wc.wr_id >= RECEIVES)
			assert_int_equal(wc.wr_id, RECEIVES + received++);
		else
			assert_int_equal(wc.wr_id, SENDS + sent++);
	}
	expect_idle(endpoint);
}

/* Opens a pair with a peer that responds "not ready" for long, so that requests stay queued. */
static void open_waiting(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.min_rnr_timer = LONG_RNR;
	pair_replace(&pair, &options);
}

/* ---- ERR ---------------------------------------------------------------------------------------------------- */

/* The first send is in flight, the others wait after it; every second one is unsignalled. */
TEST(all_is_flushed_in_order)
{
	const uint64_t sends = 40, receives = 30;
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_SEND_WITH_IMM};

	open_waiting(IBV_QPT_RC);
	for (uint64_t i = 0; i < receives; i++)
		post_receive(&pair.client, RECEIVES + i, NULL, 0);
	for (uint64_t i = 0; i < sends; i++)
		post(&pair.client, opcodes[i % 4], SENDS + i, i % 2 ? IBV_SEND_SIGNALED : 0);
	expect_idle(&pair.client);
	to_state(&pair.client, IBV_QPS_ERR);
	expect_both_flushed(&pair.client, sends, receives);
	expect_state(&pair.server, IBV_QPS_RTS);
	expect_idle(&pair.server);
	/* The program requested the state: no event. */
	expect_no_event(&client);
	expect_no_event(&server);
}

/* Flushes full rings, from varying start positions. */
TEST(full_queues_are_flushed)
{
	for (uint64_t lead = 0; lead < 9; lead++) {
		uint64_t sends, receives;

		open_waiting(IBV_QPT_RC);
		sends = pair.client.cap.max_send_wr;
		receives = pair.client.cap.max_recv_wr;
		for (uint64_t i = 0; i < lead * 7; i++) {
			post(&pair.client, IBV_WR_RDMA_WRITE, 1, IBV_SEND_SIGNALED);
			expect_completion(&pair.client, 1, IBV_WC_RDMA_WRITE);
		}
		for (uint64_t i = 0; i < receives; i++)
			post_receive(&pair.client, RECEIVES + i, NULL, 0);
		for (uint64_t i = 0; i < sends; i++)
			post(&pair.client, IBV_WR_SEND, SENDS + i, 0);
		assert_true(SENDS + sends <= RECEIVES);
		to_state(&pair.client, IBV_QPS_ERR);
		expect_both_flushed(&pair.client, sends, receives);
	}
}

/* Flushes requests that were sent and never acknowledged. */
TEST(unanswered_requests_are_flushed)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
						     IBV_WR_RDMA_WRITE_WITH_IMM};

	to_state(&pair.server, IBV_QPS_RESET);
	for (uint64_t i = 0; i < 20; i++)
		post(&pair.client, opcodes[i % 5], SENDS + i, 0);
	to_state(&pair.client, IBV_QPS_ERR);
	expect_flushed(&pair.client, SENDS, 20);
	expect_idle(&pair.client);
}

static void build(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags)
{
	ibv_wr_start(endpoint->ex);
	endpoint->ex->wr_id = wr_id;
	endpoint->ex->wr_flags = flags;
	ibv_wr_send(endpoint->ex);
	ibv_wr_set_sge(endpoint->ex, 0, 0, 0);
	expect_error(ibv_wr_complete(endpoint->ex), 0);
}

/* Requests posted in ERR are flushed at once, by any way of posting, as long as the QP exists. */
TEST(posted_in_error)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct pair_options options = pair_defaults(types[t]);

		note("type %d", types[t]);
		pair_replace(&pair, &options);
		to_state(&pair.client, IBV_QPS_ERR);
		expect_idle(&pair.client);
		for (uint64_t i = 0; i < 500; i++) {
			post(&pair.client, IBV_WR_SEND, i, i % 2 ? IBV_SEND_SIGNALED : 0);
			expect_status(&pair.client, i, IBV_WC_WR_FLUSH_ERR);
			if (types[t] != IBV_QPT_UD) {
				build(&pair.client, i, i % 3 ? IBV_SEND_SIGNALED : 0);
				expect_status(&pair.client, i, IBV_WC_WR_FLUSH_ERR);
			}
			post_receive(&pair.client, i, NULL, 0);
			expect_status(&pair.client, i, IBV_WC_WR_FLUSH_ERR);
			expect_idle(&pair.client);
		}
		expect_idle(&pair.server);
	}
}

/* An error of the receive queue also ends the send queue. */
TEST(an_error_ends_both_queues)
{
	struct ibv_sge source = side_sge(&client, 0, 64), receive = side_sge(&server, 0, 63);
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};

	open_waiting(IBV_QPT_RC);
	post_receive(&pair.server, 1, &receive, 1);
	for (uint64_t i = 0; i < 5; i++) {
		post_receive(&pair.server, RECEIVES + i, NULL, 0);
		post(&pair.server, IBV_WR_SEND, SENDS + i, 0);
	}
	post_send(&pair.client, &wr);
	expect_status(&pair.client, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_status(&pair.server, 1, IBV_WC_LOC_LEN_ERR);
	expect_both_flushed(&pair.server, 5, 5);
}

/* A local operation still queued is not executed. */
TEST(flushed_operations_have_no_effect)
{
	static struct layout layout;
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct ibv_sge list[] = {side_sge(&client, 0, 100)};
	struct ibv_send_wr invalidate = {.wr_id = SENDS + 1, .opcode = IBV_WR_LOCAL_INV};
	struct view key;

	open_waiting(IBV_QPT_RC);
	key = lay_list(&pair.client, BY_CONFIGURE, mkey, &layout, 1, list);
	invalidate.invalidate_rkey = mkey->rkey;
	post(&pair.client, IBV_WR_SEND, SENDS, 0);
	post_send(&pair.client, &invalidate);
	to_state(&pair.client, IBV_QPS_ERR);
	expect_flushed(&pair.client, SENDS, 2);
	pair_renew(&pair);
	expect_send(&pair, key, view_memory(&server, 0, 100), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

/* Receives of an SRQ do not belong to the QP: they stay for others. */
TEST(receives_of_an_srq_stay)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 15, .max_sge = 1}};
	struct pair_options options = pair.options;
	struct ibv_sge receive = side_sge(&server, 0, 64);
	struct ibv_recv_wr wr = {.sg_list = &receive, .num_sge = 1}, *bad;
	struct ibv_srq *srq;

	srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(srq);
	options.srq = srq;
	pair_replace(&pair, &options);
	for (wr.wr_id = RECEIVES; wr.wr_id < RECEIVES + 3; wr.wr_id++)
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
	to_state(&pair.server, IBV_QPS_ERR);
	expect_idle(&pair.server);
	pair_renew(&pair);
	for (uint64_t i = 0; i < 3; i++) {
		post(&pair.client, IBV_WR_SEND, i, IBV_SEND_SIGNALED);
		expect_completion(&pair.client, i, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES + i, IBV_WC_RECV);
	}
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
}

/* ---- RESET -------------------------------------------------------------------------------------------------- */

/* Moves both QPs through RESET to RTS. */
static void start_anew(void)
{
	to_state(&pair.client, IBV_QPS_RESET);
	to_state(&pair.server, IBV_QPS_RESET);
	pair_connect(&pair);
}

/* An RC pair fails and recovers repeatedly; no completion from before a reset appears after it. */
TEST(recovery)
{
	struct ibv_sge receive = side_sge(&server, 0, 8);

	for (int round = 0; round < 40; round++) {
		note("round %d", round);
		for (uint64_t i = 0; i < 5; i++)
			post_receive(&pair.server, RECEIVES + i, &receive, 1);
		/* The third one is too long for its receive. */
		for (uint64_t i = 0; i < 5; i++) {
			struct ibv_sge source = side_sge(&client, 0, i == 2 ? 9 : 8);
			struct ibv_send_wr wr = {
				.wr_id = SENDS + i, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};

			post_send(&pair.client, &wr);
		}
		expect_status(&pair.client, SENDS + 2, IBV_WC_REM_INV_REQ_ERR);
		memcpy(server.expected, client.expected, 8); /* written by the first two */
		if (round % 3 == 0)
			expect_flushed(&pair.client, SENDS + 3, 2); /* otherwise RESET drops it */
		if (round % 3 == 1)
			expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		start_anew();
		expect_idle(&pair.client);
		expect_idle(&pair.server);
		expect_write(&pair, view_memory(&client, 0, 5000), view_memory(&server, 100, 5000), IBV_WC_SUCCESS);
		expect_read(&pair, view_memory(&client, 0, 5000), view_memory(&server, 100, 5000), IBV_WC_SUCCESS);
		expect_send(&pair, view_memory(&client, 0, 3000), view_memory(&server, 100, 3000), IBV_WC_SUCCESS,
			    IBV_WC_SUCCESS);
		expect_send(&pair, view_memory(&server, 0, 3000), view_memory(&client, 100, 3000), IBV_WC_SUCCESS,
			    IBV_WC_SUCCESS);
	}
}

/* Creates an RC QP connected to itself. */
static struct ibv_qp *create_loop(struct endpoint *endpoint)
{
	struct ibv_qp_init_attr init = {
		.send_cq = endpoint->cq,
		.recv_cq = endpoint->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct endpoint self = {.options = &pair.options, .side = endpoint->side, .peer = &self};

	self.qp = ibv_create_qp(endpoint->side->pd, &init);
	assert_non_null(self.qp);
	endpoint_to_init(&self);
	endpoint_to_rtr(&self);
	endpoint_to_rts(&self);
	return self.qp;
}

static void post_to_itself(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr receive = {.wr_id = wr_id + RECEIVES}, *bad_receive;
	struct ibv_send_wr wr = send_wr(wr_id, IBV_WR_SEND, NULL), *bad;

	expect_error(ibv_post_recv(qp, &receive, &bad_receive), 0);
	expect_error(ibv_post_send(qp, &wr, &bad), 0);
}

static void expect_from(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 1);
	assert_int_equal(wc.qp_num, qp->qp_num);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Completions of three QPs alternate in one CQ; RESET removes those of one QP, flushed ones included. */
TEST(reset_purges_its_own_completions)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp[3];
	struct ibv_wc wc;

	for (int victim = 0; victim < 3; victim++) {
		for (int i = 0; i < 3; i++)
			qp[i] = create_loop(&pair.client);
		for (uint64_t i = 0; i < 6; i++)
			post_to_itself(qp[i % 3], i);
		if (victim)
			assert_int_equal(ibv_modify_qp(qp[victim], &error, IBV_QP_STATE), 0);
		if (victim)
			post_to_itself(qp[victim], 99);
		assert_int_equal(ibv_modify_qp(qp[victim], &reset, IBV_QP_STATE), 0);
		for (uint64_t i = 0; i < 6; i++) {
			if ((int)(i % 3) == victim)
				continue;
			/* The device may complete either end first. */
			assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 1);
			assert_true(wc.wr_id == i || wc.wr_id == i + RECEIVES);
			expect_from(qp[i % 3], wc.wr_id == i ? i + RECEIVES : i);
		}
		assert_int_equal(ibv_poll_cq(pair.client.cq, 1, &wc), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
}

/* ---- SQE ---------------------------------------------------------------------------------------------------- */

static void post_bad(struct endpoint *endpoint, uint64_t wr_id)
{
	struct ibv_sge sge = {side_address(endpoint->side, 0), 8, 0xdeadbeef};
	struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	post_send(endpoint, &wr);
}

/* Posts a receive for the header of a datagram. */
static void post_header(struct endpoint *endpoint, uint64_t wr_id)
{
	struct ibv_sge header = side_sge(endpoint->side, 0, 40);

	post_receive(endpoint, wr_id, &header, 1);
}

static void expect_message(struct endpoint *from)
{
	post_header(from->peer, RECEIVES);
	post(from, IBV_WR_SEND, SENDS, IBV_SEND_SIGNALED);
	expect_completion(from, SENDS, IBV_WC_SEND);
	expect_completion(from->peer, RECEIVES, IBV_WC_RECV);
}

static void send_queue_error(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};

	pair_replace(&pair, &options);
	for (int round = 0; round < 20; round++) {
		note("type %d, round %d", type, round);
		post_header(&pair.client, RECEIVES);
		post_bad(&pair.client, SENDS);
		expect_status(&pair.client, SENDS, IBV_WC_LOC_PROT_ERR);
		expect_state(&pair.client, IBV_QPS_SQE);
		/* Only the send queue is in error: requests posted to it are flushed … */
		for (uint64_t i = 0; i < 5; i++) {
			post(&pair.client, IBV_WR_SEND, SENDS + i, 0);
			expect_status(&pair.client, SENDS + i, IBV_WC_WR_FLUSH_ERR);
		}
		expect_idle(&pair.client);
		expect_idle(&pair.server);
		/* … and the receive queue works. */
		post(&pair.server, IBV_WR_SEND, SENDS, IBV_SEND_SIGNALED);
		expect_completion(&pair.server, SENDS, IBV_WC_SEND);
		expect_completion(&pair.client, RECEIVES, IBV_WC_RECV);
		expect_message(&pair.server);
		expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE | (round % 2 ? IBV_QP_CUR_STATE : 0)),
			     0);
		expect_state(&pair.client, IBV_QPS_RTS);
		expect_message(&pair.client);
	}
	post_bad(&pair.client, SENDS);
	expect_status(&pair.client, SENDS, IBV_WC_LOC_PROT_ERR);
	post_receive(&pair.client, RECEIVES, NULL, 0);
	to_state(&pair.client, IBV_QPS_ERR);
	expect_status(&pair.client, RECEIVES, IBV_WC_WR_FLUSH_ERR);
	expect_idle(&pair.client);
	expect_no_event(&client);
	memcpy(client.expected, client.memory, 40);
	memcpy(server.expected, server.memory, 40);
}

TEST(uc_send_queue_error)
{
	send_queue_error(IBV_QPT_UC);
}

TEST(ud_send_queue_error)
{
	send_queue_error(IBV_QPT_UD);
}
