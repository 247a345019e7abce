/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification (IBTA annex A17.9): the packets that cause a CNP, its content, the number of CNPs, and the
 * effect of a received one. Over a link with routers.
 */
#include "test_case.h"

#include "observe/counters.h"
#include "../support/wire_fixture.h"

enum { HERE = 0, THERE = HALF, WINDOW = 1 << 14, MTU = 256, MARKED = 3, CNP = 0x81, INTERVAL_NS = 50000 };

/* The type of the QPs. */
static enum ibv_qp_type type = IBV_QPT_RC;

static bool full;

static bool is_full(void *argument)
{
	(void)argument;
	return full;
}

static void start(bool routed)
{
	const struct wire_manner manner = {.most = 4096, .window = WINDOW, .routed = routed, .busy = is_full};
	struct ibv_qp_attr options = wire_options();

	full = false;
	wire_behave(&manner);
	wire_connect(&options, NULL, NULL);
	wire_behave(&manner);
	/* Starts a new interval. */
	wire_clock_pass(INTERVAL_NS);
}

/* Sends a packet from the client, marked according to @bits. Returns the first packet that the server sent, or NULL. */
static struct wire_packet *answer_to_write(uint8_t bits)
{
	struct wire_packet *packet;

	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
	ring(&client);
	packet = wire_take();
	assert_non_null(packet);
	packet->path.traffic_class = (uint8_t)(0x68 | bits);
	wire_receive(packet);
	free(packet);
	return wire_take();
}

static void expect_cnp(struct wire_packet *packet)
{
	static const uint8_t zeros[16];

	assert_non_null(packet);
	assert_int_equal(packet->opcode, CNP);
	assert_int_equal(packet->destination_qpn, client.qp->number);
	assert_int_equal(packet->psn, 0);
	assert_false(packet->acknowledge);
	assert_false(packet->solicited);
	assert_int_equal(packet->length, sizeof(zeros));
	assert_memory_equal(packet->payload, zeros, sizeof(zeros));
	/* As adapters set it. */
	assert_int_equal(packet->path.traffic_class, 0xc2);
	free(packet);
}

static void expect_no_cnp(struct wire_packet *packet)
{
	if (type == IBV_QPT_UC) {
		assert_null(packet);
		return;
	}
	assert_non_null(packet);
	assert_int_equal(packet->opcode, 0x11);
	wire_receive(packet);
	free(packet);
}

/* Returns a CNP from the address of the server. */
static struct wire_packet cnp_for(uint32_t qpn)
{
	return (struct wire_packet){.opcode = CNP, .length = 16, .destination_qpn = qpn, .path = server.qp->path};
}

static uint64_t sent(void)
{
	return counter_read(device.hca, COUNTER_UDP_CNPS_SENT);
}

static uint64_t received(void)
{
	return counter_read(device.hca, COUNTER_UDP_CNPS_RECEIVED);
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

/* "Congestion experienced" is 3 (RFC 3168); 1 and 2 only say that the sender supports notification. */
TEST(marked_packets_only)
{
	uint64_t before = sent();

	start(true);
	for (uint8_t bits = 0; bits < MARKED; bits++)
		expect_no_cnp(answer_to_write(bits));
	assert_int_equal(sent(), before);
	expect_cnp(answer_to_write(MARKED));
	assert_int_equal(sent(), before + 1);
	/* The acknowledgement comes after it. */
	expect_no_cnp(wire_take());
	start(false);
	expect_no_cnp(answer_to_write(MARKED));
	assert_int_equal(sent(), before + 1);
}

TEST(one_in_an_interval)
{
	uint64_t before = sent();

	start(true);
	expect_cnp(answer_to_write(MARKED));
	expect_no_cnp(wire_take());
	for (int i = 0; i < 9; i++) {
		wire_clock_pass(INTERVAL_NS / 10);
		expect_no_cnp(answer_to_write(MARKED));
	}
	wire_clock_pass(INTERVAL_NS / 10);
	expect_cnp(answer_to_write(MARKED));
	assert_int_equal(sent(), before + 2);
}

/* A CNP that could not be sent does not count. */
TEST(no_room)
{
	struct wire_packet *packet;
	uint64_t before = sent();

	start(true);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
	ring(&client);
	packet = wire_take();
	packet->path.traffic_class = MARKED;
	full = true;
	wire_receive(packet);
	free(packet);
	assert_null(wire_take());
	assert_int_equal(sent(), before);
	full = false;
	expect_cnp(answer_to_write(MARKED));
}

/* A READ response or an acknowledgement can be marked as well. */
TEST(responses)
{
	struct wire_packet *packet;

	start(true);
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 8, 0, 0);
	ring(&client);
	assert_true(wire_deliver());
	packet = wire_take();
	assert_int_equal(packet->opcode, 0x10);
	packet->path.traffic_class |= MARKED;
	wire_receive(packet);
	free(packet);
	packet = wire_take();
	assert_int_equal(packet->opcode, CNP);
	assert_int_equal(packet->destination_qpn, server.qp->number);
	/* A marked CNP causes no CNP. */
	packet->path.traffic_class |= MARKED;
	wire_receive(packet);
	free(packet);
	assert_null(wire_take());
}

TEST(unreliable)
{
	type = IBV_QPT_UC;
	wire_change_type(type);
	start(true);
	expect_no_cnp(answer_to_write(0));
	expect_cnp(answer_to_write(MARKED));
	type = IBV_QPT_RC;
	wire_change_type(type);
}

/* Each CNP at once halves the data in flight, to no less than eight packets; acknowledgements restore it. */
TEST(less_under_way)
{
	uint64_t before = received();
	struct wire_packet *packet;

	for (uint32_t notifications = 0; notifications < 6; notifications++) {
		uint32_t expected = WINDOW >> notifications, packets = 0;
		struct wire_packet cnp;

		start(true);
		cnp = cnp_for(client.qp->number);
		for (uint32_t i = 0; i < notifications; i++)
			wire_receive(&cnp);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, WINDOW, 0, 0);
		ring(&client);
		for (; (packet = wire_take()); packets++)
			free(packet);
		assert_int_equal(packets, (expected < 8 * MTU ? 8 * MTU : expected) / MTU);
	}
	assert_int_equal(received() - before, 1 + 2 + 3 + 4 + 5);
	/* They were lost; they are sent again and complete. */
	wire_settle();
	assert_memory_equal(device.memory + HERE, device.memory + THERE, WINDOW);
	assert_true(client.qp->requester.window > 8 * MTU);
	assert_non_null(raw_cq_poll(&client_cq));
	expect_no_more();
}

/* A CNP for an unknown QP, or from another peer, has no effect; one for a QP without a window is counted. */
TEST(for_others)
{
	uint64_t before = received();
	struct wire_packet cnp;

	start(true);
	cnp = cnp_for(client.qp->number ^ 0x200);
	wire_receive(&cnp);
	cnp = cnp_for(client.qp->number);
	cnp.path.source.raw[15]++;
	wire_receive(&cnp);
	assert_int_equal(received(), before);
	assert_int_equal(client.qp->requester.window, WINDOW);
	type = IBV_QPT_UC;
	wire_change_type(type);
	start(true);
	cnp = cnp_for(client.qp->number);
	wire_receive(&cnp);
	assert_int_equal(received(), before + 1);
	assert_null(wire_take());
	expect_no_more();
	type = IBV_QPT_RC;
	wire_change_type(type);
}

int main(void)
{
	return run_cases(.group_setup = wire_open, .group_teardown = wire_close);
}
