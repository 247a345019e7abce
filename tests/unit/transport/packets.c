/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester and responder with packets as a wire could deliver them: lost, late, twice, in pieces. The test is the link
 * and the peer (IBTA chapter 9).
 */
#include "test_case.h"

#include "../support/device_fixture.h"

#include "transport/control/commands.h"
#include "transport/requester/requester.h"
#include "transport/responder/responder.h"
#include "transport/run/run.h"

enum { MTU = 256, PEER = 0xfffff0 };

static struct raw_cq cq;
static struct raw_qp end;
static uint32_t sent; /* packets that the link took */
static struct packet last_sent, reply;

/* Records the packets; none arrives, the test answers. */
static enum link_result note(struct hca *hca, struct run *run)
{
	(void)hca;
	last_sent = *run_slot(run);
	sent++;
	return LINK_SENT;
}

static int open_device(void **state)
{
	static const struct link silent = {.name = "silent", .immediate = true, .send = note};

	(void)state;
	device_open(&device);
	device.hca->link = &silent;
	raw_cq_make(&device, &cq, 64);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, 16);
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	device.hca->link = NULL;
	device_close(&device);
	return 0;
}

/* Connects without a timeout unless @options has one. */
static void connect_to_peer(const struct ibv_qp_attr *options)
{
	raw_qp_connect(&device, &end, PEER, options);
	sent = 0;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251);
}

/* Returns a packet from the peer; PSNs count from the first one. */
static struct packet from_peer(enum message message, enum packet_place place, uint32_t psn)
{
	struct packet packet = {
		.transport = (uint8_t)end.qp->type,
		.message = message,
		.place = place,
		.acknowledge = end.qp->type == IBV_QPT_RC,
		.source_qpn = PEER,
		.destination_qpn = end.qp->number,
		.psn = psn_add(SQ_START_PSN, psn),
		.count = 1,
		.mtu = MTU,
		.rkey = mkey_number(device.region),
	};

	stream_begin(&packet.payload, NULL, 0);
	return packet;
}

/* Delivers a request; returns true if it was answered, in `reply`. */
static bool request(struct packet packet)
{
	bool replied;
	struct run run;

	epoch_enter();
	run_begin(&run);
	queue_lock(&end.qp->lock);
	replied = responder_receive(end.qp, &packet, &run);
	reply = *run_slot(&run);
	queue_unlock(&end.qp->lock);
	epoch_leave();
	return replied;
}

/* Delivers an acknowledgement. */
static void answer(uint8_t syndrome, uint32_t psn)
{
	struct packet packet = from_peer(MESSAGE_ACKNOWLEDGE, PLACE_ONLY, psn);
	struct run run;

	packet.syndrome = syndrome;
	epoch_enter();
	run_begin(&run);
	queue_lock(&end.qp->lock);
	requester_receive(end.qp, &packet, &run);
	queue_unlock(&end.qp->lock);
	run_finish(&run);
	epoch_leave();
}

static void expect_acknowledgement(uint8_t syndrome, uint32_t psn)
{
	assert_int_equal(reply.message, MESSAGE_ACKNOWLEDGE);
	assert_int_equal(reply.syndrome, syndrome);
	assert_int_equal(reply.psn, psn_add(SQ_START_PSN, psn));
}

/* Returns a piece of a WRITE: @length bytes from @from, of a message of @whole bytes to @to. */
static struct packet write_packet(enum packet_place place, uint32_t psn, uint32_t from, uint32_t length, uint32_t to,
				  uint32_t whole)
{
	struct packet packet = from_peer(MESSAGE_WRITE, place, psn);

	packet.remote_address = place & PLACE_FIRST ? (uintptr_t)device.memory + to : 0;
	packet.dma_length = whole;
	stream_add_memory(&packet.payload, device.memory + from, length);
	return packet;
}

static struct packet read_packet(uint32_t psn, uint32_t from, uint32_t length)
{
	struct packet packet = from_peer(MESSAGE_READ_REQUEST, PLACE_ONLY, psn);

	packet.remote_address = (uintptr_t)device.memory + from;
	packet.dma_length = length;
	return packet;
}

/* IBTA C9-110: a duplicate is answered, and does not affect the message in progress. */
TEST(late_read_between_the_packets_of_a_write)
{
	connect_to_peer(&(struct ibv_qp_attr){.min_rnr_timer = 1});
	assert_true(request(read_packet(0, 8192, 16)));
	assert_int_equal(reply.message, MESSAGE_READ_RESPONSE);
	assert_true(request(write_packet(PLACE_FIRST, 1, 0, MTU, 4096, 2 * MTU)));
	assert_true(request(read_packet(0, 8192, 16)));
	assert_int_equal(reply.message, MESSAGE_READ_RESPONSE);
	assert_true(request(write_packet(PLACE_LAST, 2, MTU, MTU, 4096, 2 * MTU)));
	expect_acknowledgement(0x1f, 2);
	assert_memory_equal(device.memory + 4096, device.memory, 2 * MTU);
}

/* ---- answers kept for duplicates (IBTA 9.7.5.1.5: as many as the responder has resources) ---------------------- */

static uint64_t *counter(void)
{
	return (uint64_t *)(device.memory + 2048);
}

/* Executes a fetch-and-add of 1. */
static bool add_one(uint32_t psn)
{
	struct packet packet = from_peer(MESSAGE_FETCH_ADD, PLACE_ONLY, psn);

	packet.remote_address = (uintptr_t)counter();
	packet.swap_add = 1;
	return request(packet);
}

/* Repeats all from @first to the last before @end_psn, and expects the same answers: n for the n-th. Nothing is added. */
static void expect_kept(uint32_t first, uint32_t end_psn)
{
	for (uint32_t psn = first; psn < end_psn; psn++) {
		reply.original = UINT64_MAX;
		assert_true(add_one(psn));
		assert_int_equal(reply.message, MESSAGE_ATOMIC_ACKNOWLEDGE);
		assert_int_equal(reply.psn, psn_add(SQ_START_PSN, psn));
		assert_int_equal(reply.original, psn);
	}
	assert_int_equal(*counter(), end_psn);
}

static void connect_with(uint8_t resources)
{
	const struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct ibv_qp_attr more = {.max_dest_rd_atomic = resources};

	connect_to_peer(&(struct ibv_qp_attr){.min_rnr_timer = 1});
	*counter() = 0;
	assert_int_equal(hca_qp_modify(end.qp, &attr, IBV_QP_STATE), 0);
	more.qp_state = IBV_QPS_SQD;
	assert_int_equal(hca_qp_modify(end.qp, &more, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
}

static void grow_to(uint8_t resources)
{
	const struct ibv_qp_attr more = {.qp_state = IBV_QPS_SQD, .max_dest_rd_atomic = resources};

	assert_int_equal(hca_qp_modify(end.qp, &more, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
}

/* Any number of answers, with the newest at any place when room for more is made (ibv_modify_qp(3), SQD). */
TEST(duplicates_when_resources_grow)
{
	for (uint32_t had = 0; had < 12; had++)
		for (uint32_t more = 0; more < 20; more++) {
			uint32_t psn = 0, kept = had < 4 ? had : 4;

			raw_qp_destroy(&end);
			raw_qp_make(&device, &end, IBV_QPT_RC, &cq, 16);
			connect_with(4);
			while (psn < had)
				assert_true(add_one(psn++));
			expect_kept(psn - kept, psn);
			grow_to(16);
			expect_kept(psn - kept, psn);
			while (psn < had + more)
				assert_true(add_one(psn++));
			kept = kept + more < 16 ? kept + more : 16;
			expect_kept(psn - kept, psn);
		}
}

/* A number of resources that is not a power of two, and one. */
TEST(duplicates_of_few)
{
	for (uint8_t resources = 5; resources <= 16; resources++) {
		connect_with(resources);
		for (uint32_t psn = 0; psn < 40; psn++) {
			assert_true(add_one(psn));
			expect_kept(psn + 1 < resources ? 0 : psn + 1 - resources, psn + 1);
		}
	}
}

/* Duplicates from an earlier connection are not answered as if they belonged to this one. */
TEST(duplicates_of_another_connection)
{
	connect_with(4);
	for (uint32_t psn = 0; psn < 4; psn++)
		assert_true(add_one(psn));
	connect_with(4);
	end.qp->responder.expected_psn = psn_add(SQ_START_PSN, 4);
	for (uint32_t psn = 0; psn < 4; psn++)
		assert_false(add_one(psn));
	assert_int_equal(*counter(), 0);
}

/* IBTA 9.7.5.2.8: after an RNR NAK no other packet is refused until the refused packet is repeated. */
TEST(silence_after_rnr_nak)
{
	connect_to_peer(&(struct ibv_qp_attr){.min_rnr_timer = 5});
	assert_true(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 0)));
	expect_acknowledgement(AETH_RNR_NAK | 5, 0);
	assert_false(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 1)));
	assert_false(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 2)));
	assert_true(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 0)));
	expect_acknowledgement(AETH_RNR_NAK | 5, 0);
	post_receive(&device, &end, 0, 16);
	assert_true(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 0)));
	expect_acknowledgement(0x1f, 0);
	expect_cqe(&cq, 0, 0);
	assert_true(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 2)));
	expect_acknowledgement(AETH_NAK | NAK_SEQUENCE, 1);
	assert_false(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 3)));
}

/* IBTA 9.7.6.1.3: after any acknowledgement of a request, the next request has all its retries. */
TEST(nak_of_the_next_request_is_progress)
{
	connect_to_peer(&(struct ibv_qp_attr){.retry_cnt = 1, .rnr_retry = 1});
	for (int i = 0; i < 4; i++)
		put_rdma(&device, &end, MLX5_OPCODE_RDMA_WRITE, 0, 4096, 8);
	ring(&end);
	assert_int_equal(sent, 4);
	for (uint32_t psn = 0; psn < 4; psn++) {
		answer(AETH_NAK | NAK_SEQUENCE, psn);
		if (psn)
			expect_cqe(&cq, (uint16_t)(psn - 1), 0);
		assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	}
	answer(AETH_ACK, 3);
	expect_cqe(&cq, 3, 0);
}

/* Delivers a READ response: @length bytes of the device's memory from @from on. */
static void answer_read(enum packet_place place, uint32_t psn, uint32_t from, uint32_t length)
{
	struct packet packet = from_peer(MESSAGE_READ_RESPONSE, place, psn);
	struct run run;

	stream_add_memory(&packet.payload, device.memory + from, length);
	epoch_enter();
	run_begin(&run);
	queue_lock(&end.qp->lock);
	requester_receive(end.qp, &packet, &run);
	queue_unlock(&end.qp->lock);
	run_finish(&run);
	epoch_leave();
}

/* IBTA 9.7.5.1: all packets of a response except the last are full, and only the last ends the READ. */
TEST(responses_of_the_wrong_length)
{
	static const struct {
		enum packet_place place;
		uint32_t length;
	} bad[] = {
		{PLACE_FIRST, 2 * MTU}, {PLACE_FIRST, 2 * MTU + 1}, {PLACE_FIRST, 100},
		{PLACE_ONLY, MTU},      {PLACE_ONLY, 2 * MTU + 1},  {PLACE_ONLY, 0},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		connect_to_peer(&(struct ibv_qp_attr){.retry_cnt = 7});
		put_rdma(&device, &end, MLX5_OPCODE_RDMA_READ, 4096, 0, 2 * MTU);
		ring(&end);
		answer_read(bad[i].place, 0, 8192, bad[i].length);
		expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
	}
	connect_to_peer(&(struct ibv_qp_attr){.retry_cnt = 7});
	put_rdma(&device, &end, MLX5_OPCODE_RDMA_READ, 4096, 0, 2 * MTU);
	ring(&end);
	answer_read(PLACE_FIRST, 0, 8192, MTU);
	assert_null(raw_cq_poll(&cq));
	answer_read(PLACE_LAST, 1, 8192 + MTU, MTU);
	expect_cqe(&cq, 0, 0);
	assert_memory_equal(device.memory + 4096, device.memory + 8192, 2 * MTU);
}

/* IBTA 9.8.2.2: the receive of an aborted SEND is used by the next SEND; a WRITE in between does not affect it. */
TEST(unreliable_write_after_a_broken_send)
{
	struct raw_qp reliable = end;

	raw_qp_make(&device, &end, IBV_QPT_UC, &cq, 16);
	connect_to_peer(&(struct ibv_qp_attr){0});
	post_receive(&device, &end, 0, 16);
	assert_false(request(from_peer(MESSAGE_SEND, PLACE_FIRST, 0)));
	assert_false(request(write_packet(PLACE_ONLY, 2, 0, 16, 4096, 16)));
	assert_memory_equal(device.memory + 4096, device.memory, 16);
	assert_null(raw_cq_poll(&cq));
	assert_false(request(from_peer(MESSAGE_SEND, PLACE_ONLY, 3)));
	expect_cqe(&cq, 0, 0);
	assert_null(raw_cq_poll(&cq));
	raw_qp_destroy(&end);
	end = reliable;
}

/* The function of an expired timer may take its lock after the timer was set again: then nothing is due. */
TEST(timer_set_again_while_it_runs_out)
{
	connect_to_peer(&(struct ibv_qp_attr){.timeout = 31});
	put_rdma(&device, &end, MLX5_OPCODE_RDMA_WRITE, 0, 4096, 8);
	ring(&end);
	assert_int_equal(sent, 1);
	run_requester_timer(&end.qp->requester.timer);
	assert_int_equal(sent, 1);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	/* Simulates the passing of time. */
	end.qp->requester.timer.deadline_ns = clock_now_ns();
	run_requester_timer(&end.qp->requester.timer);
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}

/* ibv_modify_qp(3), path_mtu: a processor that shifts by the low five bits would take 37 as 4096. */
TEST(path_mtu_beyond_the_enum)
{
	static const enum ibv_mtu none[] = {0, 6, 31, 32, 33, 37, 0x80000005};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET, .port_num = 1};

	assert_int_equal(hca_qp_modify(end.qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(
		hca_qp_modify(end.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		attr.path_mtu = none[i];
		assert_int_equal(hca_qp_modify(end.qp, &attr,
					       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER),
				 -EINVAL);
		assert_int_equal(hca_qp_state(end.qp), IBV_QPS_INIT);
	}
}

int main(void)
{
	return run_cases(.group_setup = open_device, .group_teardown = close_device);
}
