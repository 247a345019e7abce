/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiver not ready: how often and after which time a sender retries (ibv_modify_qp(3), rnr_retry and min_rnr_timer;
 * IBTA 9.7.5.2.8 and table 45), and that it continues when any thread posts a receive. Times: a retry earlier than the
 * timer is always an error. A late one can be due to a busy machine: such a measurement is repeated, and fails if it is
 * late each time.
 */
#include "test_clock.h"
#include "support/event.h"
#include "support/program.h"

#include <endian.h>
#include <poll.h>
#include <pthread.h>

enum { SENDS = 100, RECEIVES = 200, FOREVER = 7, MEASUREMENTS = 4 };

/* IBTA table 45, in milliseconds. */
static const double rnr_timer[32] = {
	655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
	0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
	20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
};

enum { MS_1 = 14, MS_10 = 20, MS_82 = 26, MS_123 = 27, MS_655 = 0 };

static void open_pair(uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.rnr_retry = rnr_retry;
	options.min_rnr_timer = min_rnr_timer;
	pair_replace(&pair, &options);
}

static void post(enum ibv_wr_opcode opcode, uint64_t wr_id, size_t from, uint32_t length, size_t to)
{
	struct ibv_sge sge = side_sge(&client, from, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32((uint32_t)wr_id),
		.wr.rdma = {side_address(&server, to), server.mr->rkey},
	};

	post_send(&pair.client, &wr);
}

static void receive(uint64_t wr_id, size_t to, uint32_t length)
{
	struct ibv_sge sge = side_sge(&server, to, length);

	post_receive(&pair.server, wr_id, &sge, 1);
}

/* ---- how often, and when ------------------------------------------------------------------------------------ */

/* Returns the milliseconds from posting a SEND without a receive until it fails. */
static double time_to_fail(enum ibv_wr_opcode opcode)
{
	double start = seconds_now();

	post(opcode, SENDS, 0, 64, 0);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR);
	return (seconds_now() - start) * 1e3;
}

/* Checks that the request fails after exactly @retries waits with timer @code. */
static void expect_retries(uint8_t retries, uint8_t code, enum ibv_wr_opcode opcode, double most)
{
	double took = 0;

	for (int i = 0; i < MEASUREMENTS; i++) {
		open_pair(retries, code);
		took = time_to_fail(opcode);
		if (took < retries * rnr_timer[code])
			fail_at(HERE, "rnr_retry %u, timer %u: failed after %f ms", retries, code, took);
		if (took < most)
			return;
	}
	fail_at(HERE, "rnr_retry %u, timer %u: %d times later than %f ms, the last time %f ms", retries, code,
		MEASUREMENTS, most, took);
}

TEST(number_of_retries)
{
	for (uint8_t retries = 0; retries < 5; retries++)
		expect_retries(retries, MS_123, retries % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND,
			       (retries + 1) * rnr_timer[MS_123]);
}

TEST(most_retries)
{
	expect_retries(6, MS_82, IBV_WR_SEND, 7 * rnr_timer[MS_82]);
}

/* All codes; measurements of the longest ones must not reach the next longer code, none the next shorter one. */
TEST(timer_codes)
{
	for (uint8_t code = 0; code < 32; code++)
		expect_retries(1, code, IBV_WR_SEND, 1.25 * rnr_timer[code] + 60);
}

/* The receiver sets the timer, and may change it while it runs (ibv_modify_qp(3), RTS to RTS). */
TEST(timer_is_the_receivers)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = MS_1};
	double took;

	open_pair(1, MS_655);
	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER), 0);
	took = time_to_fail(IBV_WR_SEND);
	assert_true(took < rnr_timer[MS_655]);
}

/* The sender fails; the receiver is unaffected, as it has received no message. */
TEST(remaining_requests_after_a_failure)
{
	/* A timer that does not expire while the rest is posted. */
	open_pair(1, MS_123);
	post_receive(&pair.client, RECEIVES, NULL, 0);
	for (uint64_t i = 0; i < 4; i++)
		post(IBV_WR_SEND, SENDS + i, 0, 64, 0);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR);
	for (uint64_t i = 1; i < 4; i++)
		expect_status(&pair.client, SENDS + i, IBV_WC_WR_FLUSH_ERR);
	expect_status(&pair.client, RECEIVES, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.client, IBV_QPS_ERR);
	expect_state(&pair.server, IBV_QPS_RTS);
	expect_idle(&pair.server);
	expect_no_event(&client);
	expect_no_event(&server);
}

/* Each delivered message restores all retries. */
TEST(progress_gives_retries_back)
{
	open_pair(1, MS_123);
	for (uint64_t i = 0; i < 4; i++) {
		post(IBV_WR_SEND, SENDS + i, 0, 64, 0);
		expect_idle(&pair.client);
		receive(RECEIVES + i, 0, 64);
		expect_completion(&pair.client, SENDS + i, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES + i, IBV_WC_RECV);
	}
	memcpy(server.expected, client.expected, 64);
}

/* retry_cnt and timeout count missing responses; an RNR NAK is a response. */
TEST(retries_of_the_other_kind_are_not_spent)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.min_rnr_timer = MS_10;
	options.retry_cnt = 0;
	options.timeout = 1; /* 8 us */
	pair_replace(&pair, &options);
	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	sleep_ms(100);
	expect_idle(&pair.client);
	receive(RECEIVES, 0, 64);
	expect_completion(&pair.client, SENDS, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	memcpy(server.expected, client.expected, 64);
}

/* ---- continuing --------------------------------------------------------------------------------------------- */

/* 7: retry forever. The device's timer retries; the thread only polls. */
TEST(forever_until_a_receive_is_posted)
{
	open_pair(FOREVER, MS_1);
	post(IBV_WR_SEND, SENDS, 0, 5000, 0);
	sleep_ms(300); /* 200 times */
	expect_idle(&pair.client);
	expect_state(&pair.client, IBV_QPS_RTS);
	receive(RECEIVES, 100, 5000);
	expect_completion(&pair.client, SENDS, IBV_WC_SEND);
	assert_int_equal(expect_completion(&pair.server, RECEIVES, IBV_WC_RECV).byte_len, 5000);
	memcpy(server.expected + 100, client.expected, 5000);
	/* No further retries follow. */
	receive(RECEIVES, 100, 5000);
	sleep_ms(20);
	expect_idle(&pair.server);
}

static void *receive_later(void *unused)
{
	struct ibv_sge sge = side_sge(&server, 100, 5000);
	struct ibv_recv_wr wr = {.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1}, *bad;

	(void)unused;
	sleep_ms(50);
	return (void *)(intptr_t)ibv_post_recv(pair.server.qp, &wr, &bad);
}

/* Sleeps at both ends until there is a completion. */
static void sleep_until_completion(struct endpoint *endpoint)
{
	struct pollfd fd = {.fd = endpoint->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(poll(&fd, 1, DEADLINE_SECONDS * 1000), 1);
	assert_int_equal(ibv_get_cq_event(endpoint->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

TEST(a_receive_of_another_thread)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	pthread_t thread;
	void *result;

	options.channel = true;
	options.min_rnr_timer = MS_1;
	pair_replace(&pair, &options);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(ibv_req_notify_cq(pair.client.cq, 0), 0);
		assert_int_equal(ibv_req_notify_cq(pair.server.cq, 1), 0);
		assert_int_equal(pthread_create(&thread, NULL, receive_later, NULL), 0);
		{
			struct ibv_sge sge = side_sge(&client, 0, 5000);
			struct ibv_send_wr wr = {.wr_id = SENDS,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .opcode = IBV_WR_SEND,
						 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED};

			post_send(&pair.client, &wr);
		}
		sleep_until_completion(&pair.client);
		sleep_until_completion(&pair.server);
		expect_completion(&pair.client, SENDS, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_null(result);
	}
	memcpy(server.expected + 100, client.expected, 5000);
}

TEST(a_receive_of_an_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 15, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(server.pd, &attr);
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge sge = side_sge(&server, 100, 64);
	struct ibv_recv_wr wr = {.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_non_null(srq);
	options.srq = srq;
	options.min_rnr_timer = MS_1;
	pair_replace(&pair, &options);
	for (int round = 0; round < 5; round++) {
		post(IBV_WR_SEND, SENDS, 0, 64, 0);
		sleep_ms(10);
		expect_idle(&pair.client);
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
		expect_completion(&pair.client, SENDS, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	}
	memcpy(server.expected + 100, client.expected, 64);

	options.rnr_retry = 2;
	pair_replace(&pair, &options);
	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR);
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
}

/* Later requests wait too, and execute in order, each once. */
TEST(order_is_kept)
{
	open_pair(FOREVER, MS_1);
	receive(RECEIVES, 0, 100);
	post(IBV_WR_SEND, SENDS, 0, 100, 0); /* the only one with a receive */
	post(IBV_WR_SEND, SENDS + 1, 100, 100, 0);
	post(IBV_WR_RDMA_WRITE, SENDS + 2, 1000, 100, 1000);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, SENDS + 3, 2000, 3000, 2000);
	post(IBV_WR_RDMA_WRITE, SENDS + 4, 1500, 100, 1050); /* overlaps the previous one */
	post(IBV_WR_SEND, SENDS + 5, 200, 100, 0);
	expect_completion(&pair.client, SENDS, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
	sleep_ms(20);
	expect_idle(&pair.client);
	memcpy(server.expected, client.expected, 100);
	side_compare(&server); /* none of the waiting requests was executed */

	for (uint64_t i = 1; i < 4; i++) {
		receive(RECEIVES + i, i * 100, 100);
		sleep_ms(5);
	}
	expect_completion(&pair.client, SENDS + 1, IBV_WC_SEND);
	expect_completion(&pair.client, SENDS + 2, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.client, SENDS + 3, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.client, SENDS + 4, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.client, SENDS + 5, IBV_WC_SEND);
	expect_completion(&pair.server, RECEIVES + 1, IBV_WC_RECV);
	assert_int_equal(expect_completion(&pair.server, RECEIVES + 2, IBV_WC_RECV_RDMA_WITH_IMM).imm_data,
			 htobe32(SENDS + 3));
	expect_completion(&pair.server, RECEIVES + 3, IBV_WC_RECV);
	expect_idle(&pair.client);
	expect_idle(&pair.server);
	memcpy(server.expected + 100, client.expected + 100, 100);
	memcpy(server.expected + 300, client.expected + 200, 100);
	memcpy(server.expected + 1000, client.expected + 1000, 50);
	memcpy(server.expected + 1050, client.expected + 1500, 100);
	memcpy(server.expected + 2000, client.expected + 2000, 3000);
}

/* A waiting connection blocks neither another connection nor its own opposite direction. */
TEST(others_go_on)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct pair other;

	open_pair(FOREVER, MS_655);
	post(IBV_WR_SEND, SENDS, 0, 64, 0);
	pair_open(&other, &client, &server, &options);
	for (int i = 0; i < 100; i++) {
		struct ibv_send_wr wr = send_wr(5, IBV_WR_SEND, NULL);

		post_receive(&other.server, 6, NULL, 0);
		post_send(&other.client, &wr);
		expect_completion(&other.client, 5, IBV_WC_SEND);
		expect_completion(&other.server, 6, IBV_WC_RECV);
		post_receive(&pair.client, 6, NULL, 0);
		post_send(&pair.server, &wr);
		expect_completion(&pair.server, 5, IBV_WC_SEND);
		expect_completion(&pair.client, 6, IBV_WC_RECV);
	}
	expect_idle(&pair.client);
	pair_close(&other);
}

/* RESET, or destroying the QP, ends the wait: no waiting message arrives after the QP is reused. */
TEST(reset_ends_the_wait)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (int round = 0; round < 20; round++) {
		open_pair(FOREVER, MS_1);
		post(IBV_WR_SEND, SENDS, 0, 64, 0);
		expect_error(ibv_modify_qp(pair.client.qp, &reset, IBV_QP_STATE), 0);
		expect_error(ibv_modify_qp(pair.server.qp, &reset, IBV_QP_STATE), 0);
		pair_connect(&pair);
		receive(RECEIVES, 0, 64);
		sleep_ms(5);
		expect_idle(&pair.server);
		expect_idle(&pair.client);
		post(IBV_WR_SEND, SENDS + 1, 0, 0, 0);
		expect_completion(&pair.client, SENDS + 1, IBV_WC_SEND);
		assert_int_equal(expect_completion(&pair.server, RECEIVES, IBV_WC_RECV).byte_len, 0);
		post(IBV_WR_SEND, SENDS, 0, 64, 0);
	} /* open_pair() destroys it while it waits */
}
