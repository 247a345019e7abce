/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of an attacker: every header field random, often nearly right. Only offered memory changes (receives, the
 * sinks of READs and atomics), every request completes at most once, and the device's own packets are well formed
 * (checked by wire_link.c). Meant for AddressSanitizer, too.
 */
#include "test_case.h"

#include "../../model/choose.h"
#include "../support/wire_fixture.h"

enum {
	ROUNDS = 400,
	PACKETS = 60,
	SINK = 0,
	SINK_BYTES = 4096,
	RECEIVES = HALF,
	RECEIVE_BYTES = 4096,
	READABLE = HALF + 8192
};

static struct choose c;
static struct mkey *readable; /* read only, [READABLE, +1000) at its address */

static int open_all(void **state)
{
	struct hca_mr_attr attr = {.length = 1000, .access = IBV_ACCESS_REMOTE_READ};

	wire_open(state);
	c = choose_for(7, 0);
	attr.addr = device.memory + READABLE;
	attr.start = (uintptr_t)attr.addr;
	assert_int_equal(hca_mr_register(device.pd, &attr, &readable), 0);
	return 0;
}

static int close_all(void **state)
{
	assert_int_equal(hca_mr_deregister(readable), 0);
	return wire_close(state);
}

static uint32_t some_opcode(enum ibv_qp_type type)
{
	static const uint8_t bases[] = {[IBV_QPT_RC] = 0x00, [IBV_QPT_UC] = 0x20, [IBV_QPT_UD] = 0x60};

	if (chance(&c, 5))
		return (uint32_t)choose_below(&c, 256);
	if (type == IBV_QPT_UD)
		return 0x64 + (uint32_t)choose_below(&c, 2);
	return bases[type] + (uint32_t)choose_below(&c, type == IBV_QPT_RC ? 0x18 : 0x0c);
}

static uint32_t near_number(uint32_t number)
{
	if (chance(&c, 5))
		return (uint32_t)choose_bits(&c) & PSN_MASK;
	return psn_add(number, (uint32_t)choose_below(&c, 8) + PSN_MASK - 3);
}

static uint32_t some_length(void)
{
	static const uint32_t lengths[] = {0, 1, 8, 100, 255, 256, 257, 512, 1000, 4096};

	return chance(&c, 50) ? 256 : CHOOSE_OF(&c, lengths);
}

static void attack(const struct raw_qp *end)
{
	static const uint32_t syndromes[] = {0x00, 0x1f, 0x20, 0x21, 0x3f, 0x40, 0x60,
					     0x61, 0x62, 0x63, 0x64, 0x7f, 0xff};
	static struct wire_packet packet;
	/* The expected number of one half or the other. */
	uint32_t number = chance(&c, 60) ? end->qp->responder.expected_psn : end->qp->requester.psn - 1;

	packet = (struct wire_packet){
		.opcode = (uint8_t)some_opcode(end->qp->type),
		.solicited = chance(&c, 50),
		.acknowledge = chance(&c, 50),
		.destination_qpn = chance(&c, 99) ? end->qp->number : (uint32_t)choose_bits(&c) & 0xffffff,
		.psn = near_number(number & PSN_MASK),
		.qkey = chance(&c, 80) ? 0x11111111 : (uint32_t)choose_bits(&c),
		.source_qpn = (uint32_t)choose_bits(&c) & 0xffffff,
		.remote_address =
			chance(&c, 70) ? (uintptr_t)device.memory + READABLE + choose_below(&c, 1000) : choose_bits(&c),
		.rkey = chance(&c, 80) ? mkey_number(readable) : (uint32_t)choose_bits(&c),
		.dma_length = chance(&c, 80) ? (uint32_t)choose_below(&c, 1500) : (uint32_t)choose_bits(&c),
		.swap_add = choose_bits(&c),
		.compare = choose_bits(&c),
		.syndrome = (uint8_t)CHOOSE_OF(&c, syndromes),
		.msn = (uint32_t)choose_bits(&c) & PSN_MASK,
		.original = choose_bits(&c),
		.invalidate_rkey = chance(&c, 50) ? mkey_number(readable) : (uint32_t)choose_bits(&c),
		.length = some_length(),
	};
	/* No such opcode: a link would drop it. */
	if (!packet_opcodes[packet.opcode].name)
		return;
	memset(packet.payload, 0x5a, packet.length);
	wire_receive(&packet);
}

/* Posts requests with answers that the attacker may forge, and receives for its packets. */
static void offer(struct raw_qp *end)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_RDMA_WRITE,
					  MLX5_OPCODE_SEND};

	for (uint32_t i = 0; i < 6; i++)
		post_receive(&device, end, RECEIVES + 512 * i, 512);
	if (end->qp->type == IBV_QPT_UD)
		return;
	for (uint32_t i = 0; i < 4; i++) {
		uint8_t opcode = end->qp->type == IBV_QPT_RC ? opcodes[choose_below(&c, 4)] : MLX5_OPCODE_SEND;

		put_request(end, opcode, SINK + 1024 * i, READABLE, opcode == MLX5_OPCODE_ATOMIC_FA ? 8 : 700, 0, 0);
	}
	ring(end);
}

/* Atomics are never executed at the READABLE region, which does not grant them. */
static void expect_untouched(const uint8_t *before)
{
	for (uint32_t i = 0; i < sizeof(device.memory); i++) {
		if (i - SINK < SINK_BYTES || i - RECEIVES < RECEIVE_BYTES)
			continue;
		if (device.memory[i] != before[i])
			fail_msg("byte %#x was written", i);
	}
}

static uint32_t completions(struct raw_cq *cq)
{
	uint32_t count = 0;

	while (raw_cq_poll(cq))
		count++;
	return count;
}

static void anything(enum ibv_qp_type type)
{
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = wire_options();
	uint32_t alive = 0;

	wire_change_type(type);
	for (int round = 0; round < ROUNDS; round++) {
		struct wire_packet *lost;

		wire_connect(&options, NULL, NULL);
		offer(&client);
		memcpy(before, device.memory, sizeof(before));
		for (int i = 0; i < PACKETS && hca_qp_state(client.qp) == IBV_QPS_RTS; i++, alive++) {
			attack(&client);
			/* The true peer receives nothing. */
			while ((lost = wire_take()))
				free(lost);
			if (chance(&c, 5))
				wire_clock_next();
		}
		expect_untouched(before);
		assert_true(completions(&client_cq) <= 6 + 4);
		assert_int_equal(completions(&server_cq), 0);
	}
	/* Most packets must be survived for a while, or the test would cover little. */
	assert_true(alive > ROUNDS * 3);
}

TEST(reliable)
{
	anything(IBV_QPT_RC);
}

TEST(unreliable)
{
	anything(IBV_QPT_UC);
}

TEST(datagrams)
{
	anything(IBV_QPT_UD);
}

int main(void)
{
	return run_cases(.setup = open_all, .teardown = close_all);
}
