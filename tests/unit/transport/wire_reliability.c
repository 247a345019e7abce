/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reliability of a connection, over a link that limits pieces and window, or has no room (IBTA volume 1, 9.7;
 * ibv_modify_qp(3)): waiting for a receiver, one acknowledgement for many packets, repeated atomics, packets of an
 * earlier connection, draining, the window itself.
 */
#include "test_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "format/opcode.h"
#include "transport/run/run.h"
#include "../support/wire_fixture.h"

enum { HERE = 0, THERE = HALF, PIECE = 4096, WINDOW = 8192, MOST_KEPT = 256 };

/* All packets sent since start(). */
static struct {
	struct wire_packet packet[MOST_KEPT];
	uint64_t time_ns[MOST_KEPT];
	uint32_t count;
	/* Messages of the transport: a bit for each that is lost. */
	uint32_t lost;
	bool full;
} kept;

static enum wire_verdict keep(void *argument, uint64_t number, const struct wire_packet *packet)
{
	(void)argument;
	(void)number;
	if (kept.count < MOST_KEPT) {
		kept.packet[kept.count] = *packet;
		kept.time_ns[kept.count++] = clock_now_ns();
	}
	return kept.lost & 1u << packet_opcodes[packet->opcode].message ? WIRE_DROP : WIRE_PASS;
}

static bool is_full(void *argument)
{
	(void)argument;
	return kept.full;
}

static void start(const struct ibv_qp_attr *options)
{
	static const struct wire_manner manner = {.most = PIECE, .window = WINDOW, .busy = is_full};

	memset(&kept, 0, sizeof(kept));
	/* A connection starts with the window of its link. */
	wire_behave(&manner);
	wire_connect(options, keep, NULL);
	wire_behave(&manner);
}

static void make_room(void)
{
	struct run run;

	kept.full = false;
	epoch_enter();
	run_begin(&run);
	link_resume(&link_common_queue, UINT32_MAX, &run);
	run_finish(&run);
	epoch_leave();
}

static uint32_t kept_of(uint8_t message)
{
	uint32_t count = 0;

	assert_true(kept.count < MOST_KEPT);
	for (uint32_t i = 0; i < kept.count; i++)
		count += packet_opcodes[kept.packet[i].opcode].message == message;
	return count;
}

/* ---- receivers -------------------------------------------------------------------------------------------------- */

/* Table 45, in milliseconds, as in Wireshark's InfiniBand decoder. */
TEST(each_rnr_timer)
{
	static const double milliseconds[32] = {
		655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
		0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
		20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
	};

	for (uint8_t code = 0; code < 32; code++) {
		struct ibv_qp_attr options = wire_options();

		options.min_rnr_timer = code;
		options.timeout = 31;
		start(&options);
		put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 300, 0, 0);
		ring(&client);
		for (int times = 0; times < 3; times++) {
			uint32_t before = kept.count;

			wire_deliver_all();
			/* The refusal; after its time, and not before, all of the message. */
			assert_int_equal(kept.packet[kept.count - 1].syndrome, AETH_RNR_NAK | code);
			before = kept.count;
			wire_clock_pass((uint64_t)(milliseconds[code] * 1e6 + 0.5) - 1);
			assert_int_equal(kept.count, before);
			wire_clock_pass(1);
			assert_int_equal(kept.count, before + 2);
			assert_int_equal(kept.packet[before].psn, SQ_START_PSN);
		}
		post_receive(&device, &server, THERE, 300);
		wire_settle();
		expect_cqe(&client_cq, 0, 0);
		expect_receive(0, 300);
		assert_memory_equal(device.memory + THERE, device.memory + HERE, 300);
		expect_no_more();
	}
}

/* rnr_retry 7 is unlimited, also on a link that delivers later. */
TEST(endless_patience)
{
	struct ibv_qp_attr options = wire_options();

	options.retry_cnt = 0;
	start(&options);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE_IMM, HERE, THERE, 3 * 256, 0, 0);
	ring(&client);
	for (int times = 0; times < 1000; times++) {
		kept.count = 0;
		wire_deliver_all();
		expect_no_more();
		assert_true(wire_clock_next());
	}
	post_receive(&device, &server, THERE + 4096, 8);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	expect_receive(0, 3 * 256);
	expect_no_more();
}

/* ---- several messages -------------------------------------------------------------------------------------------- */

static void expect_announced(uint32_t first, const bool *more, uint32_t count)
{
	assert_int_equal(kept.count, first + count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(kept.packet[first + i].more, more[i]);
}

/*
 * The link may keep a packet until the next one that is announced. A local operation may take long, and a window may be
 * used up: nothing is kept then. The wire delivers nothing that it has kept.
 */
TEST(more_is_announced)
{
	struct ibv_qp_attr options = wire_options();
	uint32_t first;

	start(&options);
	for (uint32_t i = 0; i < 2; i++)
		put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 100, 0, 0);
	put_request(&client, MLX5_OPCODE_NOP, HERE, 0, 0, 0, 0);
	put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 100, 0, 0);
	ring(&client);
	expect_announced(0, (const bool[]){true, false, false}, 3);
	first = kept.count;
	/* No receive: all of them are sent again. */
	kept.lost = 1u << MESSAGE_SEND;
	wire_deliver_all();
	assert_int_equal(kept.packet[first++].syndrome & AETH_KIND_MASK, AETH_RNR_NAK);
	assert_true(wire_clock_next());
	expect_announced(first, (const bool[]){true, true, false}, 3);
	/* The second WRITE does not fit into the window. */
	start(&options);
	for (uint32_t i = 0; i < 2; i++)
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, WINDOW, 0, 0);
	ring(&client);
	assert_true(kept.packet[kept.count - 1].more);
	wire_deliver_all();
	expect_cqe(&client_cq, 0, 0);
	expect_cqe(&client_cq, 1, 0);
	expect_no_more();
}

/* A packet may wait for the program's next call only if four before it are not acknowledged, and if it is a message. */
TEST(streams)
{
	struct ibv_qp_attr options = wire_options();

	start(&options);
	for (uint32_t i = 0; i < 6; i++) {
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 100, 0, 0);
		ring(&client);
		assert_int_equal(kept.packet[i].streams, i >= 4);
		assert_int_equal(kept.packet[i].more, i >= 4);
	}
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 257, 0, 0);
	ring(&client);
	assert_int_equal(kept.count, 8);
	assert_false(kept.packet[6].streams || kept.packet[7].streams);
	for (int i = 0; i < 4; i++)
		assert_true(wire_deliver());
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 100, 0, 0);
	ring(&client);
	/* The acknowledgements are on the wire. */
	assert_true(kept.packet[kept.count - 1].streams);
	wire_deliver_all();
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 100, 0, 0);
	ring(&client);
	assert_false(kept.packet[kept.count - 1].streams);
	wire_deliver_all();
	for (uint16_t i = 0; i < 9; i++)
		expect_cqe(&client_cq, i, 0);
	expect_no_more();
	/* The ninth READ waits for an answer, so the others must leave. */
	options.max_rd_atomic = options.max_dest_rd_atomic = 8;
	start(&options);
	for (uint32_t i = 0; i < 9; i++) {
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 100, 0, 0);
		if (i >= 7)
			ring(&client);
		if (i == 7)
			assert_true(wire_lets_wait());
	}
	assert_int_equal(kept.count, 8);
	wire_deliver_all();
	for (uint16_t i = 0; i < 9; i++)
		expect_cqe(&client_cq, i, 0);
	expect_no_more();
	start(&options);
	for (uint32_t i = 0; i < 9; i++)
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 100, 0, 0);
	ring(&client);
	assert_int_equal(kept.count, 8);
	assert_false(wire_lets_wait());
	wire_deliver_all();
	for (uint16_t i = 0; i < 9; i++)
		expect_cqe(&client_cq, i, 0);
	expect_no_more();
}

/* ---- acknowledgements ------------------------------------------------------------------------------------------- */

/* 9.7.5.1.2: packets that arrive together are acknowledged once. */
TEST(one_for_many)
{
	struct ibv_qp_attr options = wire_options();
	struct wire_packet *packets[16];
	uint32_t count = 0;

	start(&options);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 10 * 256 + 1, 0, 0);
	ring(&client);
	while ((packets[count] = wire_take()))
		count++;
	assert_int_equal(count, 11);
	wire_receive_run((const struct wire_packet *const *)packets, count);
	assert_int_equal(kept_of(MESSAGE_ACKNOWLEDGE), 1);
	assert_int_equal(kept.packet[11].psn, psn_add(SQ_START_PSN, 10));
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	assert_memory_equal(device.memory + THERE, device.memory + HERE, 10 * 256 + 1);
	while (count--)
		free(packets[count]);
	expect_no_more();
}

/* Sends @count SENDs of the client, which arrive together. */
static void send_together(uint32_t count, void (*before_end)(void))
{
	struct wire_packet *packets[16];

	for (uint32_t i = 0; i < count; i++) {
		post_receive(&device, &server, THERE + 256 * i, 256);
		put_request(&client, MLX5_OPCODE_SEND, HERE + 256 * i, 0, 100, 0, 0);
	}
	ring(&client);
	for (uint32_t i = 0; i < count; i++)
		assert_non_null(packets[i] = wire_take());
	assert_null(wire_take());
	wire_receive_poll((const struct wire_packet *const *)packets, count, before_end);
	for (uint32_t i = 0; i < count; i++)
		free(packets[i]);
}

static void do_nothing(void)
{
}

/*
 * 9.7.5.1.2, for messages: one acknowledgement, if the receiver polls its CQ. If the first message wakes it, that one is
 * acknowledged before, because the program may answer by other means.
 */
TEST(one_for_many_messages)
{
	struct ibv_qp_attr options = wire_options();
	struct event_queue channel;

	event_queue_init(&channel);
	server_cq.cq->channel = &channel;
	for (uint32_t armed = 0; armed < 2; armed++) {
		start(&options);
		if (armed)
			hca_cq_request(server_cq.cq, server_cq.consumer & 0xffffff);
		send_together(5, do_nothing);
		assert_int_equal(kept_of(MESSAGE_ACKNOWLEDGE), 1 + armed);
		assert_int_equal(kept.packet[5].psn, psn_add(SQ_START_PSN, armed ? 0 : 4));
		assert_int_equal(kept.packet[5 + armed].psn, psn_add(SQ_START_PSN, 4));
		wire_settle();
		for (uint16_t i = 0; i < 5; i++) {
			expect_receive(i, 100);
			expect_cqe(&client_cq, i, 0);
		}
		expect_no_more();
	}
	event_source_purge(&channel, &server_cq.cq->completion);
	server_cq.cq->channel = NULL;
	event_queue_destroy(&channel);
}

static void answer(void)
{
	put_request(&server, MLX5_OPCODE_SEND, THERE, 0, 8, 0, 0);
	ring(&server);
}

/* Its peer may take an answer as the end of its own message, as over an adapter (ib_send_lat). */
TEST(no_answer_overtakes_an_acknowledgement)
{
	struct ibv_qp_attr options = wire_options();

	start(&options);
	post_receive(&device, &client, HERE, 8);
	send_together(3, answer);
	assert_int_equal(kept_of(MESSAGE_ACKNOWLEDGE), 1);
	assert_int_equal(packet_opcodes[kept.packet[3].opcode].message, MESSAGE_ACKNOWLEDGE);
	assert_int_equal(kept.packet[3].psn, psn_add(SQ_START_PSN, 2));
	assert_int_equal(packet_opcodes[kept.packet[4].opcode].message, MESSAGE_SEND);
	wire_settle();
}

/* Only the last of several acknowledgements arrives: it completes all requests. */
TEST(the_last_one_tells_all)
{
	struct ibv_qp_attr options = wire_options();

	start(&options);
	for (uint32_t i = 0; i < 5; i++)
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 1024 * i, 100, 0, 0);
	ring(&client);
	kept.lost = 1u << MESSAGE_ACKNOWLEDGE;
	for (int i = 0; i < 4; i++)
		assert_true(wire_deliver());
	kept.lost = 0;
	wire_deliver_all();
	for (uint16_t i = 0; i < 5; i++)
		expect_cqe(&client_cq, i, 0);
	assert_int_equal(kept_of(MESSAGE_WRITE), 5);
	expect_no_more();
}

/*
 * 9.7.6.1.3: without an answer, one more try per time-out (retry_cnt + 1 tries in all), then failure, within the time
 * limit.
 */
TEST(exhaustion)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		for (uint8_t timeout = 8; timeout <= 20; timeout += 6) {
			struct ibv_qp_attr options = wire_options();
			uint64_t unit = UINT64_C(4096) << timeout, begin = clock_now_ns(), left;

			options.retry_cnt = retries;
			options.timeout = timeout;
			start(&options);
			kept.lost = ~0u;
			/* More than the window. */
			put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 2 * WINDOW, 0, 0);
			ring(&client);
			assert_true(kept.count <= WINDOW / 256);
			while ((left = wire_clock_left()) != UINT64_MAX) {
				kept.count = 0;
				wire_clock_next();
			}
			expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
			assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
			/* C9-142: a time-out takes one to four times the value of the attribute. */
			assert_in_range(clock_now_ns() - begin, (retries + 1) * unit, 4 * (retries + 1) * unit);
		}
	}
}

/* ---- repetitions ------------------------------------------------------------------------------------------------ */

/* 9.7.5.1.5: as many atomics as may be outstanding, each repeated in any order: executed once, answered alike. */
TEST(atomics_once)
{
	enum { DEPTH = 16 };
	struct ibv_qp_attr options = wire_options();
	uint64_t before, after, answered[DEPTH];
	uint32_t count;

	options.max_rd_atomic = options.max_dest_rd_atomic = DEPTH;
	start(&options);
	memcpy(&before, device.memory + THERE, 8);
	for (uint32_t i = 0; i < DEPTH; i++)
		put_request(&client, MLX5_OPCODE_ATOMIC_FA, HERE + 8 * i, THERE, 8, 0, 0);
	ring(&client);
	wire_deliver_all();
	count = kept.count;
	assert_int_equal(kept_of(MESSAGE_FETCH_ADD), DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++) {
		expect_cqe(&client_cq, (uint16_t)i, 0);
		memcpy(&answered[i], device.memory + HERE + 8 * i, 8);
		assert_true(answered[i] == before + i * UINT64_C(0x0102030405060708));
	}
	for (uint32_t i = count; i--;) {
		const struct wire_packet packet = kept.packet[i];
		uint32_t place = (uint32_t)psn_distance(packet.psn, SQ_START_PSN);
		struct wire_packet *answer;

		if (packet_opcodes[packet.opcode].message != MESSAGE_FETCH_ADD)
			continue;
		wire_receive(&packet);
		answer = wire_take();
		assert_non_null(answer);
		assert_int_equal(packet_opcodes[answer->opcode].message, MESSAGE_ATOMIC_ACKNOWLEDGE);
		assert_int_equal(answer->psn, packet.psn);
		assert_true(answer->original == answered[place]);
		free(answer);
	}
	memcpy(&after, device.memory + THERE, 8);
	assert_true(after == before + DEPTH * UINT64_C(0x0102030405060708));
	expect_no_more();
}

/* ---- earlier connections ---------------------------------------------------------------------------------------- */

static void connect_at(const struct ibv_qp_attr *options, uint32_t psn)
{
	struct raw_qp *ends[] = {&client, &server};

	start(options);
	for (int e = 0; e < 2; e++) {
		ends[e]->qp->requester.psn = ends[e]->qp->requester.newest = psn;
		ends[e]->qp->requester.acknowledged = psn_add(psn, PSN_MASK);
		ends[e]->qp->responder.expected_psn = psn;
	}
}

/* Packets of a connection before a reset, older or newer than the expected numbers: neither has an effect. */
TEST(stale_packets)
{
	static const uint32_t distances[] = {1000, 1u << 20, PSN_MASK + 1 - 1000, PSN_MASK + 1 - (1u << 20)};
	static uint8_t before[sizeof(device.memory)];
	static struct wire_packet stale[MOST_KEPT];
	struct ibv_qp_attr options = wire_options();

	for (size_t d = 0; d < sizeof(distances) / sizeof(distances[0]); d++) {
		uint32_t count;

		start(&options);
		for (int r = 0; r < 4; r++)
			post_receive(&device, &server, THERE + 4096, 2048);
		put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 600, 0, 0);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 600, 0, 0);
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE + 4096, THERE, 600, 0, 0);
		put_request(&client, MLX5_OPCODE_ATOMIC_FA, HERE + 8192, THERE, 8, 0, 0);
		ring(&client);
		wire_settle();
		count = kept.count;
		memcpy(stale, kept.packet, sizeof(stale));
		connect_at(&options, psn_add(SQ_START_PSN, distances[d]));
		for (int r = 0; r < 4; r++)
			post_receive(&device, &server, THERE + 4096, 2048);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 8192, 600, 0, 0);
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE + 4096, THERE + 8192, 600, 0, 0);
		memcpy(before, device.memory, sizeof(before));
		memcpy(before + THERE + 8192, device.memory + HERE, 600);
		memcpy(before + HERE + 4096, device.memory + HERE, 600);
		ring(&client);
		for (uint32_t i = 0; i < count; i++) {
			wire_receive(&stale[i]);
			if (i % 3 == 0)
				wire_deliver();
		}
		wire_settle();
		expect_cqe(&client_cq, 0, 0);
		expect_cqe(&client_cq, 1, 0);
		expect_no_more();
		assert_memory_equal(device.memory, before, sizeof(before));
	}
}

/* ---- draining --------------------------------------------------------------------------------------------------- */

static bool takes_event(int type)
{
	int got;
	void *object;
	bool found = false;

	while (!event_queue_take(&device.async, &got, &object))
		found |= got == type;
	return found;
}

/* ibv_modify_qp(3), SQD: started requests end, including repetitions; others wait; then the event is reported. */
TEST(drained_when_acknowledged)
{
	struct ibv_qp_attr options = wire_options(), drain = {.en_sqd_async_notify = 1}, resume = {0};

	assert_int_equal(fcntl(device.async.fd, F_SETFL, O_NONBLOCK), 0);
	start(&options);
	takes_event(IBV_EVENT_SQ_DRAINED);
	/* More than the window: part of it is unsent when draining begins. */
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 2 * WINDOW, 0, 0);
	ring(&client);
	kept.lost = 1u << MESSAGE_ACKNOWLEDGE;
	wire_deliver_all();
	wire_modify(&client, IBV_QPS_SQD, drain, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 2 * WINDOW, 100, 0, 0);
	ring(&client);
	kept.count = 0;
	assert_true(wire_clock_next());
	assert_true(kept.count > 0);
	assert_false(takes_event(IBV_EVENT_SQ_DRAINED));
	kept.lost = 0;
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	assert_null(raw_cq_poll(&client_cq));
	assert_true(takes_event(IBV_EVENT_SQ_DRAINED));
	assert_memory_equal(device.memory + THERE, device.memory + HERE, 2 * WINDOW);
	wire_modify(&client, IBV_QPS_RTS, resume, 0);
	wire_settle();
	expect_cqe(&client_cq, 1, 0);
	expect_no_more();
}

/* ---- window and room -------------------------------------------------------------------------------------------- */

/* At most a window is in flight; each acknowledgement lets more follow. */
TEST(window)
{
	struct ibv_qp_attr options = wire_options();
	uint32_t acknowledged = 0;

	start(&options);
	for (uint32_t i = 0; i < 3; i++)
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 2 * WINDOW - 7 * i, 0, 0);
	ring(&client);
	assert_int_equal(kept.count, WINDOW / 256);
	do {
		uint32_t newest = 0;

		for (uint32_t i = 0; i < kept.count; i++) {
			uint32_t distance = (uint32_t)psn_distance(kept.packet[i].psn, SQ_START_PSN) + 1;

			if (packet_opcodes[kept.packet[i].opcode].message == MESSAGE_WRITE && distance > newest)
				newest = distance;
			if (packet_opcodes[kept.packet[i].opcode].message == MESSAGE_ACKNOWLEDGE &&
			    distance > acknowledged)
				acknowledged = distance;
		}
		/* An acknowledgement may have been sent but not have arrived. */
		assert_true(newest <= acknowledged + WINDOW / 256);
		kept.count = 0;
	} while (wire_deliver());
	for (uint16_t i = 0; i < 3; i++)
		expect_cqe(&client_cq, i, 0);
	expect_no_more();
}

/* A READ longer than the window is requested in pieces, each after the one before has arrived. */
TEST(long_read)
{
	struct ibv_qp_attr options = wire_options();
	uint32_t length = 3 * WINDOW + 100, at = 0;

	start(&options);
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, length, 0, 0);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	assert_memory_equal(device.memory + HERE, device.memory + THERE, length);
	for (uint32_t i = 0; i < kept.count; i++) {
		const struct wire_packet *packet = &kept.packet[i];

		if (packet_opcodes[packet->opcode].message != MESSAGE_READ_REQUEST)
			continue;
		assert_int_equal(packet->remote_address, (uintptr_t)device.memory + THERE + at);
		assert_int_equal(packet->psn, psn_add(SQ_START_PSN, at / 256));
		assert_true(packet->dma_length && packet->dma_length <= WINDOW);
		at += packet->dma_length;
	}
	assert_int_equal(at, length);
	expect_no_more();
}

/* Without room nothing is lost: requests and answers continue when there is room. */
TEST(no_room)
{
	struct ibv_qp_attr options = wire_options();

	start(&options);
	kept.full = true;
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 1000, 0, 0);
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE + 4096, THERE + 4096, 1000, 0, 0);
	ring(&client);
	assert_int_equal(kept.count, 0);
	assert_true(link_has_waiters(&link_common_queue));
	make_room();
	assert_int_equal(kept_of(MESSAGE_WRITE), 4);
	assert_int_equal(kept_of(MESSAGE_READ_REQUEST), 1);
	kept.full = true;
	wire_deliver_all();
	assert_int_equal(kept.count, 5);
	make_room();
	wire_deliver_all();
	expect_cqe(&client_cq, 0, 0);
	expect_cqe(&client_cq, 1, 0);
	assert_memory_equal(device.memory + THERE, device.memory + HERE, 1000);
	assert_memory_equal(device.memory + HERE + 4096, device.memory + THERE + 4096, 1000);
	assert_false(link_has_waiters(&link_common_queue));
	expect_no_more();
}

/* A QP that waits for room may be reset or destroyed. */
TEST(gone_while_waiting)
{
	struct ibv_qp_attr options = wire_options();

	for (int destroyed = 0; destroyed < 2; destroyed++) {
		start(&options);
		kept.full = true;
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 1000, 0, 0);
		ring(&client);
		assert_true(link_has_waiters(&link_common_queue));
		if (destroyed) {
			raw_qp_destroy(&client);
			assert_false(link_has_waiters(&link_common_queue));
			raw_qp_make(&device, &client, IBV_QPT_RC, &client_cq, BLOCKS);
		} else {
			wire_modify(&client, IBV_QPS_RESET, (struct ibv_qp_attr){0}, 0);
		}
		make_room();
		assert_int_equal(kept.count, 0);
		assert_int_equal(wire_clock_left(), UINT64_MAX);
	}
}

static void *destroy_server(void *argument)
{
	(void)argument;
	raw_qp_destroy(&server);
	return NULL;
}

/*
 * A thread has found room for a QP with an unsent READ response, and another thread destroys the QP before it is sent;
 * then there is no room after all. The QP must not wait again, since no thread would remove it any more.
 */
TEST(destroyed_while_it_goes_on)
{
	struct ibv_qp_attr options = wire_options();
	uint32_t number;
	pthread_t thread;
	struct run run;

	start(&options);
	number = server.qp->number;
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 1000, 0, 0);
	ring(&client);
	kept.full = true;
	wire_deliver_all();
	assert_true(link_has_waiters(&link_common_queue));
	epoch_enter();
	run_begin(&run);
	link_resume(&link_common_queue, UINT32_MAX, &run);
	assert_int_equal(pthread_create(&thread, NULL, destroy_server, NULL), 0);
	/* Until it waits for the section of this thread to end, its last step before freeing. */
	while (qp_find(number))
		sched_yield();
	usleep(10000);
	run_finish(&run);
	epoch_leave();
	pthread_join(thread, NULL);
	assert_false(link_has_waiters(&link_common_queue));
	make_room();
	raw_qp_make(&device, &server, IBV_QPT_RC, &server_cq, BLOCKS);
}

/* In ERR nothing is sent any more, even if the QP waits for room. */
TEST(flushed_while_waiting)
{
	struct ibv_qp_attr options = wire_options();

	start(&options);
	kept.full = true;
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 1000, 0, 0);
	ring(&client);
	wire_modify(&client, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0);
	expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	make_room();
	assert_int_equal(kept.count, 0);
	assert_false(link_has_waiters(&link_common_queue));
}

int main(void)
{
	return run_cases(.setup = wire_open, .teardown = wire_close);
}
