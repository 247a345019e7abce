/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over a wire: split into packets of every path MTU, at every relevant length; then with each of their packets
 * in turn lost, duplicated, or overtaken. RC recovers, UC loses whole messages.
 */
#include "test_case.h"

#include "../support/wire_fixture.h"
#include "../support/mishap.h"

enum { IMMEDIATE = 0x1a2b3c4d };

static const uint8_t opcodes[] = {MLX5_OPCODE_SEND,           MLX5_OPCODE_SEND_IMM,  MLX5_OPCODE_RDMA_WRITE,
				  MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA,
				  MLX5_OPCODE_ATOMIC_CS};

#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

static bool is_atomic(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_ATOMIC_FA || opcode == MLX5_OPCODE_ATOMIC_CS;
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
}

/* Expected memory after each message of a test. */
static uint8_t expected[sizeof(device.memory)];

/* Returns the place of message @i of @length bytes, at both ends. */
static uint32_t client_place(uint32_t i)
{
	return i * 2048;
}

static uint32_t server_place(uint32_t i)
{
	return HALF + i * 2048;
}

static void expect_message(uint8_t opcode, uint32_t i, uint32_t length)
{
	uint8_t *here = expected + client_place(i), *there = expected + server_place(i);
	uint64_t before, after, operand = UINT64_C(0x0102030405060708);

	if (is_atomic(opcode)) {
		memcpy(&before, there, 8);
		/* The compare value is 0, which differs from memory. */
		after = opcode == MLX5_OPCODE_ATOMIC_FA ? before + operand : before;
		memcpy(there, &after, 8);
		memcpy(here, &before, 8);
	} else if (opcode == MLX5_OPCODE_RDMA_READ) {
		memcpy(here, there, length);
	} else {
		memcpy(there, here, length);
	}
}

static void put_message(uint8_t opcode, uint32_t i, uint32_t length)
{
	if (is_atomic(opcode))
		length = 8;
	if (takes_receive(opcode))
		post_receive(&device, &server, server_place(i), 2048);
	put_request(&client, opcode, client_place(i), server_place(i), length, IMMEDIATE + i, 0);
	expect_message(opcode, i, length);
}

static void expect_completions(uint8_t opcode, uint32_t i, uint16_t receive, uint32_t length)
{
	expect_cqe(&client_cq, (uint16_t)i, 0);
	if (!takes_receive(opcode))
		return;
	switch (expect_receive(receive, length)) {
	case MLX5_CQE_RESP_WR_IMM:
		assert_int_equal(opcode, MLX5_OPCODE_RDMA_WRITE_IMM);
		break;
	case MLX5_CQE_RESP_SEND_IMM:
		assert_int_equal(opcode, MLX5_OPCODE_SEND_IMM);
		break;
	default:
		assert_int_equal(opcode, MLX5_OPCODE_SEND);
	}
}

static void start(const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	wire_connect(options, filter, argument);
	memcpy(expected, device.memory, sizeof(expected));
}

static void compare_memory(void)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg("byte %#zx is %02x, not %02x", i, device.memory[i], expected[i]);
}

/* ---- splitting ------------------------------------------------------------------------------------------------- */

/* Returns the number of packets of a message, including its answer. */
static uint32_t packets(uint8_t opcode, uint32_t length)
{
	uint32_t cut = length ? (length + wire_mtu - 1) / wire_mtu : 1;

	return is_atomic(opcode) ? 2 : cut + 1;
}

TEST(every_length)
{
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_1024; mtu++) {
		uint32_t bytes = 128u << mtu;
		const uint32_t lengths[] = {0, 1, 8, bytes - 1, bytes, bytes + 1, 2 * bytes - 1, 2 * bytes, 2048};
		struct ibv_qp_attr options = wire_options();

		options.path_mtu = (enum ibv_mtu)mtu;
		for (size_t o = 0; o < OPCODES; o++) {
			for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
				start(&options, NULL, NULL);
				put_message(opcodes[o], 0, lengths[l]);
				ring(&client);
				wire_deliver_all();
				expect_completions(opcodes[o], 0, 0, lengths[l]);
				expect_no_more();
				compare_memory();
				assert_int_equal(wire_sent(), packets(opcodes[o], lengths[l]));
				/* Nothing is pending any more. */
				assert_true(wire_rests());
			}
		}
	}
}

/* ---- mishaps --------------------------------------------------------------------------------------------------- */

enum { BATCH = 5 };

/* Sends five messages at once, each with another opcode: each arrives once, in order. */
static void batch(size_t first, uint32_t length, const struct mishap *mishap)
{
	uint16_t receive = 0;

	for (uint32_t i = 0; i < BATCH; i++)
		put_message(opcodes[(first + i) % OPCODES], i, length);
	ring(&client);
	wire_settle();
	for (uint32_t i = 0; i < BATCH; i++) {
		uint8_t opcode = opcodes[(first + i) % OPCODES];

		if (hca_qp_state(client.qp) != IBV_QPS_RTS)
			fail_msg("batch %zu of %u bytes ends in error: verdict %d on packet %lu", first, length,
				 mishap->verdict, mishap->number);
		expect_completions(opcode, i, receive, length);
		receive += takes_receive(opcode);
	}
	expect_no_more();
	compare_memory();
}

/* Affects the n-th packet, then the next, until none is left. */
TEST(one_mishap)
{
	static const uint32_t lengths[] = {0, 100, 700};
	struct ibv_qp_attr options = wire_options();

	for (int verdict = WIRE_DROP; verdict <= WIRE_DELAY; verdict++) {
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			for (size_t first = 0; first < OPCODES; first++) {
				struct mishap mishap = {.verdict = (enum wire_verdict)verdict};

				while (mishap_next(&mishap)) {
					start(&options, mishap_filter, &mishap);
					batch(first, lengths[l], &mishap);
				}
				/* A request and an answer for each, at least. */
				assert_true(mishap.number > BATCH);
			}
		}
	}
}

/* Two packets: the second mishap often affects the recovery from the first. */
struct two_mishaps {
	struct mishap first, second;
};

static enum wire_verdict twice(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct two_mishaps *two = argument;
	enum wire_verdict verdict = mishap_filter(&two->first, number, packet);

	return verdict == WIRE_PASS ? mishap_filter(&two->second, number, packet) : verdict;
}

TEST(two_mishaps)
{
	struct ibv_qp_attr options = wire_options();

	for (int verdicts = 0; verdicts < 9; verdicts++) {
		for (size_t first = 0; first < OPCODES; first++) {
			struct two_mishaps two = {.first = {.verdict = (enum wire_verdict)(WIRE_DROP + verdicts % 3),
							    .happened = true},
						  .second = {.verdict = (enum wire_verdict)(WIRE_DROP + verdicts / 3)}};

			while (two.first.happened) {
				two.first.number++;
				two.second.number = two.first.number;
				do {
					two.second.number++;
					two.first.happened = two.second.happened = false;
					start(&options, twice, &two);
					batch(first, 300, &two.second);
				} while (two.second.happened);
			}
		}
	}
}

/* Any packet is lost now and then, reproducibly. */
TEST(bad_weather)
{
	struct ibv_qp_attr options = wire_options();
	struct mishap none = {0};

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct wire_dice dice = {
			.state = seed, .drop = 8, .twice = 8, .delay = 8, .transports = 1u << IBV_QPT_RC};

		start(&options, wire_dice, &dice);
		none.number = seed;
		batch(seed % OPCODES, (uint32_t)(seed * 37 % 2000), &none);
	}
}

/* ---- UC -------------------------------------------------------------------------------------------------------- */

/*
 * IBTA 9.8.2.2: a message that lost a packet is lost as a whole, the others are not affected. The next message uses its
 * receive.
 */
TEST(unreliable_messages)
{
	static const uint8_t sequence[] = {MLX5_OPCODE_SEND,           MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_SEND_IMM,
					   MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_SEND,       MLX5_OPCODE_SEND};
	enum { COUNT = 6, PACKETS = 3, LENGTH = 2 * 256 + 50 };
	struct ibv_qp_attr options = wire_options();
	/* The packets are counted from 1; three for each message. */
	struct mishap mishap = {.verdict = WIRE_DROP};

	wire_change_type(IBV_QPT_UC);
	for (mishap.number = 1; mishap.number <= COUNT * PACKETS; mishap.number++) {
		uint32_t lost = (uint32_t)(mishap.number - 1) / PACKETS;
		uint16_t receive = 0;

		start(&options, mishap_filter, &mishap);
		for (uint32_t i = 0; i < COUNT; i++)
			post_receive(&device, &server, server_place(8 + i), 2048);
		for (uint32_t i = 0; i < COUNT; i++)
			put_request(&client, sequence[i], client_place(i), server_place(i), LENGTH, IMMEDIATE + i, 0);
		ring(&client);
		wire_settle();
		assert_int_equal(wire_sent(), COUNT * PACKETS);
		for (uint32_t i = 0; i < COUNT; i++) {
			const uint8_t *there = device.memory + server_place(i);

			/* The sender is not notified. */
			expect_cqe(&client_cq, (uint16_t)i, 0);
			if (takes_receive(sequence[i]) && i != lost) {
				if (sequence[i] != MLX5_OPCODE_RDMA_WRITE_IMM)
					there = device.memory + server_place(8u + receive);
				expect_receive(receive++, LENGTH);
			}
			if (i != lost)
				assert_memory_equal(there, device.memory + client_place(i), LENGTH);
		}
		expect_no_more();
	}
}

int main(void)
{
	return run_cases(.setup = wire_open, .teardown = wire_close);
}
