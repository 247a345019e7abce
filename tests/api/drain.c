/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests draining a send queue: SQD (IBTA 10.3.1.5; ibv_modify_qp(3); ibv_get_async_event(3), IBV_EVENT_SQ_DRAINED). Requests in
 * flight complete, no new ones start, receiving continues; after the return to RTS the queue resumes where it stopped.
 */
#include "test_clock.h"
#include "support/event.h"
#include "support/program.h"

enum { SENDS = 100, RECEIVES = 200, MS_10 = 20, MS_164 = 28 };

static void open_pair(enum ibv_qp_type type, uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct pair_options options = pair_defaults(type);

	options.rnr_retry = rnr_retry;
	options.min_rnr_timer = min_rnr_timer;
	pair_replace(&pair, &options);
}

static void post(uint64_t wr_id)
{
	struct ibv_send_wr wr = send_wr(wr_id, IBV_WR_SEND, NULL);

	post_send(&pair.client, &wr);
}

/* Posts a receive, with room for the header of a datagram. */
static void receive(struct endpoint *endpoint, uint64_t wr_id)
{
	struct ibv_sge header = side_sge(endpoint->side, 0, 40);

	post_receive(endpoint, wr_id, &header, 1);
}

static void drain(bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0)), 0);
	assert_int_equal(pair.client.qp->state, IBV_QPS_SQD);
}

static void resume(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

#define expect_draining(yes) expect_draining_(HERE, yes)

static void expect_draining_(struct place place, bool yes)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error_(place, "ibv_query_qp()", ibv_query_qp(pair.client.qp, &attr, IBV_QP_STATE, &init), 0);
	if (attr.qp_state != IBV_QPS_SQD || attr.sq_draining != yes)
		fail_at(place, "state %d, sq_draining %d", attr.qp_state, attr.sq_draining);
}

static void expect_sent(uint64_t wr_id)
{
	expect_completion(&pair.client, wr_id, IBV_WC_SEND);
	expect_completion(&pair.server, wr_id - SENDS + RECEIVES, IBV_WC_RECV);
	memcpy(server.expected, server.memory, 40); /* headers of datagrams */
}

/* ---- an idle queue ------------------------------------------------------------------------------------------ */

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

TEST(an_idle_queue_is_drained_at_once)
{
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		note("type %d", types[t]);
		open_pair(types[t], 7, 1);
		for (int round = 0; round < 4; round++) {
			bool notify = round % 2 == 0;

			drain(notify);
			/* Each drain must request the event: without the attribute there is none. */
			if (notify)
				expect_event(&client, IBV_EVENT_SQ_DRAINED, pair.client.qp);
			expect_no_event(&client);
			expect_draining(false);
			resume();
			expect_no_event(&client);
		}
		expect_no_event(&server);
	}
}

/* en_sqd_async_notify 0 with its bit is the same as without it. */
TEST(notification_switched_off)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 0};

	drain(true);
	expect_event(&client, IBV_EVENT_SQ_DRAINED, pair.client.qp);
	resume();
	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	expect_no_event(&client);
}

/* Requests posted during a drain wait, and are executed in order after it, for many laps of the ring. */
TEST(posting_while_drained)
{
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_pair(types[t], 7, 1);
		for (uint64_t round = 0; round < 30; round++) {
			note("type %d, round %lu", types[t], round);
			drain(false);
			for (uint64_t i = 0; i < 7; i++) {
				receive(&pair.server, RECEIVES + i);
				post(SENDS + i);
			}
			expect_idle(&pair.client);
			expect_idle(&pair.server);
			expect_draining(false);
			resume();
			for (uint64_t i = 0; i < 7; i++)
				expect_sent(SENDS + i);
			expect_idle(&pair.client);
		}
	}
}

/* A drained queue fills up like any other. */
TEST(a_drained_queue_fills)
{
	struct ibv_send_wr wr = send_wr(0, IBV_WR_RDMA_WRITE, NULL), *bad;
	uint32_t most;

	open_pair(IBV_QPT_RC, 7, 1);
	most = pair.client.cap.max_send_wr;
	for (int round = 0; round < 3; round++) {
		drain(false);
		for (wr.wr_id = 0; wr.wr_id < most; wr.wr_id++)
			post_send(&pair.client, &wr);
		expect_error(ibv_post_send(pair.client.qp, &wr, &bad), ENOMEM);
		resume();
		for (uint32_t i = 0; i < most; i++)
			expect_completion(&pair.client, i, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
	}
}

/* Only the send queue stops: the QP receives and answers READs. */
TEST(a_drained_queue_pair_receives)
{
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, NULL);

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_pair(types[t], 7, 1);
		drain(false);
		receive(&pair.client, RECEIVES);
		post_send(&pair.server, &wr);
		expect_completion(&pair.server, 1, IBV_WC_SEND);
		expect_completion(&pair.client, RECEIVES, IBV_WC_RECV);
		memcpy(client.expected, client.memory, 40);
		if (types[t] != IBV_QPT_RC)
			continue;
		expect_read(&pair, view_memory(&server, 0, 5000), view_memory(&client, 0, 5000), IBV_WC_SUCCESS);
		expect_write(&pair, view_memory(&server, 0, 5000), view_memory(&client, 0, 5000), IBV_WC_SUCCESS);
	}
}

TEST(from_drained_to_error)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_pair(types[t], 7, 1);
		drain(false);
		for (uint64_t i = 0; i < 5; i++)
			post(SENDS + i);
		expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
		for (uint64_t i = 0; i < 5; i++)
			expect_status(&pair.client, SENDS + i, IBV_WC_WR_FLUSH_ERR);
		expect_idle(&pair.client);
		expect_idle(&pair.server);
	}
}

/* ---- requests in flight ------------------------------------------------------------------------------------- */

/* One SEND waits for a receive, one is posted after it, one comes later: only the first is part of the drain. */
static void requests_on_their_way_end(bool notify)
{
	open_pair(IBV_QPT_RC, 7, MS_10);
	post(SENDS);
	post(SENDS + 1);
	drain(notify);
	post(SENDS + 2);
	expect_draining(true);
	sleep_ms(50);
	expect_draining(true);
	expect_no_event(&client);
	expect_idle(&pair.client);
	for (uint64_t i = 0; i < 3; i++)
		receive(&pair.server, RECEIVES + i);
	expect_sent(SENDS);
	if (notify)
		expect_event(&client, IBV_EVENT_SQ_DRAINED, pair.client.qp);
	expect_draining(false);
	sleep_ms(30);
	expect_no_event(&client);
	expect_idle(&pair.client);
	expect_idle(&pair.server);
	resume();
	expect_sent(SENDS + 1);
	expect_sent(SENDS + 2);
	expect_no_event(&client);
}

TEST(drain_with_notification)
{
	requests_on_their_way_end(true);
}

TEST(drain_without_notification)
{
	requests_on_their_way_end(false);
}

/* Returning to RTS before the drain has finished resumes the queue without an event. */
TEST(resumed_before_it_was_drained)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	open_pair(IBV_QPT_RC, 7, MS_10);
	post(SENDS);
	post(SENDS + 1);
	drain(true);
	expect_draining(true);
	resume();
	expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.sq_draining, 0);
	receive(&pair.server, RECEIVES);
	receive(&pair.server, RECEIVES + 1);
	expect_sent(SENDS);
	expect_sent(SENDS + 1);
	expect_no_event(&client);
}

/* The retry rules also apply during a drain: two waits of 164 ms, then it fails. */
TEST(retries_while_draining)
{
	const double wait = 163.84;
	double start, took;

	open_pair(IBV_QPT_RC, 2, MS_164);
	start = seconds_now();
	post(SENDS);
	post(SENDS + 1);
	drain(true);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR);
	took = (seconds_now() - start) * 1e3;
	if (took < 2 * wait)
		fail_at(HERE, "failed after %f ms", took);
	expect_status(&pair.client, SENDS + 1, IBV_WC_WR_FLUSH_ERR);
	expect_state(&pair.client, IBV_QPS_ERR);
	/* The queue failed, so there is no event. */
	expect_no_event(&client);
}

/* A peer responds late: unanswered requests are retransmitted while the queue drains. */
TEST(a_late_peer_while_draining)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge sge = side_sge(&client, 0, 100);
	struct ibv_send_wr wr = send_wr(SENDS, IBV_WR_RDMA_READ, &sge);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	endpoint_to_init(&pair.server);
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	wr.wr.rdma.rkey = server.mr->rkey;
	post_send(&pair.client, &wr);
	drain(true);
	expect_draining(true);
	endpoint_to_rtr(&pair.server);
	expect_completion(&pair.client, SENDS, IBV_WC_RDMA_READ);
	expect_event(&client, IBV_EVENT_SQ_DRAINED, pair.client.qp);
	expect_draining(false);
	memcpy(client.expected, server.expected, 100);
}

/* ---- attributes --------------------------------------------------------------------------------------------- */

/* In SQD the attributes of the path and of retries may change (ibv_modify_qp(3), SQD to SQD). */
TEST(attributes_change_while_drained)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .rnr_retry = 1, .retry_cnt = 3, .timeout = 9};
	struct ibv_qp_init_attr init;

	open_pair(IBV_QPT_RC, 7, 1);
	drain(false);
	expect_error(ibv_modify_qp(pair.client.qp, &attr,
				   IBV_QP_STATE | IBV_QP_RNR_RETRY | IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT),
		     0);
	expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.rnr_retry, 1);
	assert_int_equal(attr.retry_cnt, 3);
	assert_int_equal(attr.timeout, 9);
	expect_draining(false);
	expect_no_event(&client); /* no second event after the drain */
	resume();
	post(SENDS);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR); /* now limited */
}
