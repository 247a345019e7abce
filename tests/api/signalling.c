/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions and wake-ups: sq_sig_all, unsignalled requests and the room they take (mlx5-formats 3.3, 4.2), solicited
 * events (ibv_req_notify_cq(3)), and the fence (ibv_post_send(3)).
 */
#include "support/program.h"
#include "test_clock.h"

#include <poll.h>

enum { FIRST_RECEIVE = 0x1000 };

static struct ibv_send_wr a_write(uint64_t wr_id, unsigned int flags)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma = {side_address(&server, 0), server.mr->rkey},
	};
}

static void post(enum ibv_wr_opcode opcode, uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = a_write(wr_id, flags);

	wr.opcode = opcode;
	post_send(&pair.client, &wr);
}

/* ---- signalled and unsignalled ------------------------------------------------------------------------------ */

TEST(all_are_signalled)
{
	struct pair_options options = pair.options;

	options.sq_sig_all = true;
	for (int type = 0; type < 2; type++) {
		options.type = type ? IBV_QPT_UC : IBV_QPT_RC;
		options.send_ops = pair_defaults(options.type).send_ops;
		options.dv_send_ops = pair_defaults(options.type).dv_send_ops;
		pair_replace(&pair, &options);
		for (uint64_t i = 0; i < 10; i++)
			post(IBV_WR_RDMA_WRITE, i, i % 2 ? IBV_SEND_SIGNALED : 0);
		for (uint64_t i = 0; i < 10; i++)
			expect_completion(&pair.client, i, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
	}
}

/*
 * Requests leave although the program makes no further call: it may wait for the last one in memory. Over udp, those of a
 * stream wait for each other for a moment.
 */
TEST(no_further_call)
{
	enum { WRITES = 20, ROUNDS = 10 };
	volatile uint64_t *word = (volatile uint64_t *)(void *)server.memory;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		double deadline = seconds_now() + 20;

		memcpy(client.memory, &round, sizeof(round));
		for (uint64_t i = 0; i < WRITES; i++) {
			struct ibv_send_wr wr = a_write(i, i + 1 < WRITES ? 0 : IBV_SEND_SIGNALED);
			struct ibv_sge sge = side_sge(&client, 0, sizeof(round));

			wr.wr.rdma.remote_addr += i * sizeof(round);
			wr.sg_list = &sge;
			wr.num_sge = 1;
			post_send(&pair.client, &wr);
		}
		while (word[WRITES - 1] != round)
			assert_true(seconds_now() < deadline);
		for (uint64_t i = 0; i < WRITES; i++)
			assert_int_equal(word[i], round);
		expect_completion(&pair.client, WRITES - 1, IBV_WC_RDMA_WRITE);
	}
	memcpy(client.expected, client.memory, sizeof(uint64_t));
	memcpy(server.expected, server.memory, WRITES * sizeof(uint64_t));
}

/*
 * A queue is full while the completions that would free max_send_wr requests are not polled: a written but unpolled
 * completion frees nothing. Many laps of the ring, with signalled requests at every distance.
 */
TEST(unsignalled_take_room)
{
	uint32_t most, distance = 1;
	struct ibv_send_wr extra = a_write(999, IBV_SEND_SIGNALED), *bad;
	struct pair_options options = pair.options;

	options.max_send_wr = 7;
	pair_replace(&pair, &options);
	most = pair.client.cap.max_send_wr;
	assert_true(most >= 7);
	for (int round = 0; round < 300; round++, distance = distance % most + 1) {
		note("max_send_wr %u, every %uth request signalled", most, distance);
		/* The last one is signalled, so that all is freed at the end of the round. */
		for (uint32_t i = 1; i <= most; i++)
			post(IBV_WR_RDMA_WRITE, i, i % distance && i < most ? 0 : IBV_SEND_SIGNALED);
		expect_error(ibv_post_send(pair.client.qp, &extra, &bad), ENOMEM);
		assert_ptr_equal(bad, &extra);
		for (uint32_t i = distance; i < most; i += distance) {
			expect_completion(&pair.client, i, IBV_WC_RDMA_WRITE);
			/* Polling it also frees the unsignalled ones before it. */
			for (uint32_t room = 0; room < distance; room++)
				post(IBV_WR_RDMA_WRITE, 500, 0);
			expect_error(ibv_post_send(pair.client.qp, &extra, &bad), ENOMEM);
		}
		expect_completion(&pair.client, most, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
		/* Requests posted meanwhile take the remaining room: one more signalled request frees it. */
		post(IBV_WR_RDMA_WRITE, 600, IBV_SEND_SIGNALED);
		expect_completion(&pair.client, 600, IBV_WC_RDMA_WRITE);
	}
}

/* A list is posted up to the request that does not fit, which bad_wr points to. */
TEST(a_list_that_does_not_fit)
{
	struct ibv_send_wr list[100], *bad = NULL;
	struct pair_options options = pair.options;
	uint32_t most;

	options.max_send_wr = 7;
	pair_replace(&pair, &options);
	most = pair.client.cap.max_send_wr;
	assert_true(most < ARRAY_SIZE(list));
	for (uint32_t i = 0; i < ARRAY_SIZE(list); i++) {
		list[i] = a_write(i, IBV_SEND_SIGNALED);
		list[i].next = i + 1 < ARRAY_SIZE(list) ? &list[i + 1] : NULL;
	}
	for (int round = 0; round < 20; round++) {
		expect_error(ibv_post_send(pair.client.qp, list, &bad), ENOMEM);
		assert_ptr_equal(bad, &list[most]);
		for (uint32_t i = 0; i < most; i++)
			expect_completion(&pair.client, i, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
	}
}

/* ---- solicited events --------------------------------------------------------------------------------------- */

static bool event_waits(const struct endpoint *endpoint)
{
	struct pollfd fd = {.fd = endpoint->channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void take_event(struct endpoint *endpoint)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(event_waits(endpoint));
	assert_int_equal(ibv_get_cq_event(endpoint->channel, &cq, &context), 0);
	assert_ptr_equal(cq, endpoint->cq);
	assert_ptr_equal(context, endpoint);
	ibv_ack_cq_events(cq, 1);
	assert_false(event_waits(endpoint));
}

static void open_with_channels(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.channel = true;
	pair_replace(&pair, &options);
}

/* Checks that only a message with the flag wakes a receiver armed for solicited events. */
static void solicits(enum ibv_wr_opcode opcode, enum ibv_wc_opcode sent, enum ibv_wc_opcode received)
{
	struct ibv_sge header = side_sge(&server, 0, 40);

	note("type %d, opcode %d", pair.options.type, opcode);
	for (uint64_t i = 0; i < 3; i++)
		post_receive(&pair.server, FIRST_RECEIVE + i, &header, 1);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 1), 0);
	assert_int_equal(ibv_req_notify_cq(pair.client.cq, 1), 0);
	post(opcode, 0, IBV_SEND_SIGNALED);
	assert_false(event_waits(&pair.server));
	post(opcode, 1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	take_event(&pair.server);
	post(opcode, 2, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	assert_false(event_waits(&pair.server)); /* one event for one call */
	assert_false(event_waits(&pair.client)); /* a successful send completion is not solicited */
	for (uint64_t i = 0; i < 3; i++) {
		expect_completion(&pair.client, i, sent);
		expect_completion(&pair.server, FIRST_RECEIVE + i, received);
	}
	/* The client is still armed for solicited events: arm it for all, and consume the event. */
	assert_int_equal(ibv_req_notify_cq(pair.client.cq, 0), 0);
	post_receive(&pair.server, FIRST_RECEIVE, &header, 1);
	post(opcode, 3, IBV_SEND_SIGNALED);
	take_event(&pair.client);
	expect_completion(&pair.client, 3, sent);
	expect_completion(&pair.server, FIRST_RECEIVE, received);
	memcpy(server.expected, server.memory, 40); /* headers of datagrams */
}

TEST(solicited_events)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		open_with_channels(types[i]);
		solicits(IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV);
		solicits(IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV);
		if (types[i] != IBV_QPT_UD)
			solicits(IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM);
	}
}

/* "If the status is not successful": a failed send also raises an event on a CQ armed for solicited events only. */
TEST(errors_are_solicited)
{
	struct ibv_sge sge = side_sge(&client, 0, 8);
	struct ibv_send_wr wr = a_write(5, 0);

	open_with_channels(IBV_QPT_RC);
	post_receive(&pair.server, FIRST_RECEIVE, NULL, 0);
	assert_int_equal(ibv_req_notify_cq(pair.client.cq, 1), 0);
	assert_int_equal(ibv_req_notify_cq(pair.server.cq, 1), 0);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.rkey = 0xdeadbeef;
	post_send(&pair.client, &wr);
	take_event(&pair.client);
	take_event(&pair.server);
	expect_status(&pair.client, 5, IBV_WC_REM_ACCESS_ERR);
	expect_status(&pair.server, FIRST_RECEIVE, IBV_WC_WR_FLUSH_ERR);
}

/* ---- fence -------------------------------------------------------------------------------------------------- */

/*
 * "Set the fence indicator": the request waits for earlier READs and atomics, since it may send their results. All are posted
 * at once; the server must get the data that the READ fetched.
 */
TEST(fenced_requests_use_the_data_read)
{
	struct ibv_sge here = side_sge(&client, 0, 4000), word = side_sge(&client, 0, 8),
		       receive = side_sge(&server, 30000, 4000);
	struct ibv_send_wr *bad, list[3] = {
					 {.wr_id = 1,
					  .next = &list[1],
					  .sg_list = &here,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_READ,
					  .wr.rdma = {side_address(&server, 8000), server.mr->rkey}},
					 {.wr_id = 2,
					  .next = &list[2],
					  .sg_list = &word,
					  .num_sge = 1,
					  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					  .send_flags = IBV_SEND_FENCE,
					  .wr.atomic = {side_address(&server, 16000), 1, 0, server.mr->rkey}},
					 {.wr_id = 3,
					  .sg_list = &here,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED},
				 };

	for (int round = 0; round < 50; round++) {
		uint64_t value;

		side_stir(&client);
		side_stir(&server);
		post_receive(&pair.server, FIRST_RECEIVE, &receive, 1);
		expect_error(ibv_post_send(pair.client.qp, list, &bad), 0);
		expect_completion(&pair.client, 3, IBV_WC_SEND);
		expect_completion(&pair.server, FIRST_RECEIVE, IBV_WC_RECV);
		memcpy(client.expected, server.expected + 8000, 4000);
		memcpy(client.expected, server.expected + 16000, 8);
		memcpy(server.expected + 30000, client.expected, 4000);
		memcpy(&value, server.expected + 16000, sizeof(value));
		value++;
		memcpy(server.expected + 16000, &value, sizeof(value));
		side_compare(&client);
		side_compare(&server);
	}
}
