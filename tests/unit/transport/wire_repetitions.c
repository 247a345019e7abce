/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive again, because the requester resent them or the network kept a copy (IBTA volume 1, 9.7.5.1), and
 * the number of READs and atomics that a responder grants (9.7.4.1.5; ibv_modify_qp(3), max_dest_rd_atomic). A
 * repetition never changes memory, never fails the connection, and never takes the turn of a new request.
 */
#include "test_case.h"

#include "observe/counters.h"
#include "format/opcode.h"
#include "transport/run/run.h"
#include "../support/wire_fixture.h"

enum { HERE = 0, THERE = HALF, MOST_KEPT = 256, PIECE = 4096, WINDOW = 1 << 20, DEPTH = LIMIT_MAX_RD_ATOMIC };

/* All packets sent since start(). */
static struct {
	struct wire_packet packet[MOST_KEPT];
	uint32_t count;
	bool full;
	uint32_t room; /* runs that find room although the link is full */
} kept;

static enum wire_verdict keep(void *argument, uint64_t number, const struct wire_packet *packet)
{
	(void)argument;
	(void)number;
	assert_true(kept.count < MOST_KEPT);
	kept.packet[kept.count++] = *packet;
	return WIRE_PASS;
}

static bool is_full(void *argument)
{
	(void)argument;
	if (!kept.full)
		return false;
	if (!kept.room)
		return true;
	kept.room--;
	return false;
}

static void start(const struct ibv_qp_attr *options)
{
	static const struct wire_manner manner = {.most = PIECE, .window = WINDOW, .busy = is_full};

	memset(&kept, 0, sizeof(kept));
	wire_behave(&manner);
	wire_connect(options, keep, NULL);
	wire_behave(&manner);
}

/* Lets QPs that wait for room try again. @runs: number of them that find room; UINT32_MAX: all. */
static void make_room(uint32_t runs)
{
	struct run run;

	kept.full = runs != UINT32_MAX;
	kept.room = runs;
	epoch_enter();
	run_begin(&run);
	link_resume(&link_common_queue, UINT32_MAX, &run);
	run_finish(&run);
	epoch_leave();
}

static bool is_message(const struct wire_packet *packet, uint8_t message)
{
	return packet_opcodes[packet->opcode].message == message;
}

/* Returns the first sent packet of type @message. */
static const struct wire_packet *first_of(uint8_t message)
{
	for (uint32_t i = 0; i < kept.count; i++)
		if (is_message(&kept.packet[i], message))
			return &kept.packet[i];
	fail();
	return NULL;
}

static struct ibv_qp_attr options_of(uint8_t depth, uint8_t granted)
{
	struct ibv_qp_attr options = wire_options();

	options.max_rd_atomic = depth;
	options.max_dest_rd_atomic = granted;
	return options;
}

static uint64_t counted(enum counter counter)
{
	return counter_read(device.hca, counter);
}

static struct mkey *register_memory(void)
{
	struct hca_mr_attr attr = {.addr = device.memory,
				   .start = (uintptr_t)device.memory,
				   .length = sizeof(device.memory),
				   .access = ALL_ACCESS};
	struct mkey *region;

	assert_int_equal(hca_mr_register(device.pd, &attr, &region), 0);
	return region;
}

/* put_request() with @key for the memory. */
static void put_by_key(struct mkey *key, uint8_t opcode, uint32_t local, uint32_t remote, uint32_t length)
{
	struct mkey *region = device.region;

	device.region = key;
	put_request(&client, opcode, local, remote, length, 0, 0);
	device.region = region;
}

/* ---- the granted number ----------------------------------------------------------------------------------------- */

/*
 * Some answers have left when the requester, which has received none yet, resends all of its requests. Then it receives
 * the first, and sends one more request, as it may: the new request implies that it has the answer which the responder
 * is about to resend.
 */
TEST(repetitions_take_no_turn)
{
	enum { BYTES = 1000 };

	for (uint8_t depth = 1; depth <= DEPTH; depth++) {
		for (uint32_t left = 1; left <= depth; left++) {
			struct ibv_qp_attr options = options_of(depth, depth);

			start(&options);
			for (uint32_t i = 0; i <= depth; i++)
				put_request(&client, MLX5_OPCODE_RDMA_READ, HERE + i * BYTES, THERE + i * BYTES, BYTES,
					    0, 0);
			ring(&client);
			assert_int_equal(kept.count, depth);
			kept.full = true;
			wire_deliver_all();
			make_room(left);
			assert_true(kept.count > depth);
			for (uint32_t i = 0; i < depth; i++)
				wire_receive(&kept.packet[i]);
			kept.full = false;
			wire_deliver_all();
			make_room(UINT32_MAX);
			wire_deliver_all();
			for (uint32_t i = 0; i <= depth; i++)
				expect_cqe(&client_cq, (uint16_t)i, 0);
			expect_no_more();
			assert_memory_equal(device.memory + HERE, device.memory + THERE, (depth + 1) * BYTES);
		}
	}
}

/* One READ or atomic more than granted, while none is answered, is refused; all before it are answered (9.7.4.1.5). */
TEST(as_many_as_granted)
{
	for (uint8_t granted = 1; granted < DEPTH; granted++) {
		for (int atomics = 0; atomics < 2; atomics++) {
			struct ibv_qp_attr options = options_of(granted + 1, granted);

			start(&options);
			for (uint32_t i = 0; i <= granted; i++)
				put_request(&client, atomics && i % 2 ? MLX5_OPCODE_ATOMIC_FA : MLX5_OPCODE_RDMA_READ,
					    HERE + 16 * i, THERE, 8, 0, 0);
			ring(&client);
			kept.full = true;
			wire_deliver_all();
			make_room(UINT32_MAX);
			wire_deliver_all();
			for (uint32_t i = 0; i < granted; i++)
				expect_cqe(&client_cq, (uint16_t)i, 0);
			expect_cqe(&client_cq, granted, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
			assert_int_equal(hca_qp_state(server.qp), IBV_QPS_ERR);
			assert_null(raw_cq_poll(&client_cq));
		}
	}
}

/* A network that duplicates one request while answers wait causes no time-out of the requester. */
TEST(doubled_request_costs_no_retry)
{
	enum { BYTES = 3 * PIECE, READS = 3 };
	struct ibv_qp_attr options = options_of(READS, READS);

	for (uint32_t doubled = 0; doubled < READS; doubled++) {
		for (uint32_t left = 0; left < 3 * READS; left++) {
			uint64_t resent = counted(COUNTER_PACKETS_RESENT);

			start(&options);
			for (uint32_t i = 0; i < READS; i++)
				put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE + 16 * i, BYTES, 0, 0);
			ring(&client);
			assert_int_equal(kept.count, READS);
			kept.full = true;
			wire_deliver_all();
			make_room(left);
			wire_receive(&kept.packet[doubled]);
			make_room(UINT32_MAX);
			wire_deliver_all();
			for (uint32_t i = 0; i < READS; i++)
				expect_cqe(&client_cq, (uint16_t)i, 0);
			expect_no_more();
			assert_memory_equal(device.memory + HERE, device.memory + THERE + 16 * (READS - 1), BYTES);
			assert_int_equal(counted(COUNTER_PACKETS_RESENT), resent);
		}
	}
}

/* ---- effects of repetitions ------------------------------------------------------------------------------------- */

/* Executes every kind of request with a key that ends when it has completed. Then each packet is repeated. */
TEST(key_has_ended)
{
	enum { WORD = 8192, BYTES = 600 };
	static const uint8_t opcodes[] = {MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_SEND,
					  MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS};
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = options_of(1, 1);

	for (size_t o = 0; o < sizeof(opcodes); o++) {
		bool atomic = opcodes[o] == MLX5_OPCODE_ATOMIC_FA || opcodes[o] == MLX5_OPCODE_ATOMIC_CS;
		struct mkey *key;
		uint32_t count;

		start(&options);
		key = register_memory();
		post_receive(&device, &server, THERE + 4096, 2048);
		put_by_key(key, opcodes[o], HERE, THERE + WORD, atomic ? 8 : BYTES);
		ring(&client);
		wire_deliver_all();
		expect_cqe(&client_cq, 0, 0);
		if (opcodes[o] == MLX5_OPCODE_SEND)
			expect_receive(0, BYTES);
		assert_int_equal(hca_mr_deregister(key), 0);
		/* The program reuses its memory. */
		for (uint32_t i = 0; i < HALF; i++)
			device.memory[THERE + i] ^= 0x5a;
		memcpy(before, device.memory, sizeof(before));
		count = kept.count;
		for (uint32_t i = 0; i < count; i++)
			if (!message_has(packet_opcodes[kept.packet[i].opcode].message, MESSAGE_IS_RESPONSE))
				wire_receive(&kept.packet[i]);
		/* IBTA 9.7.5.1: requests without data in their answer are acknowledged, atomics answered as before. */
		assert_int_equal(kept.count > count, opcodes[o] != MLX5_OPCODE_RDMA_READ);
		for (uint32_t i = count; i < kept.count; i++)
			assert_int_equal(kept.packet[i].syndrome, ACKNOWLEDGED);
		if (atomic)
			assert_true(kept.packet[count].original == first_of(MESSAGE_ATOMIC_ACKNOWLEDGE)->original);
		wire_deliver_all();
		assert_memory_equal(device.memory, before, sizeof(before));
		expect_no_more();
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, BYTES, 0, 0);
		ring(&client);
		wire_deliver_all();
		expect_cqe(&client_cq, 1, 0);
		expect_no_more();
	}
}

/* The key ends while the answer to a repetition waits for room: a READ that follows is still answered. */
TEST(key_ends_while_the_answer_waits)
{
	struct ibv_qp_attr options = options_of(2, 2);
	struct mkey *key = register_memory();

	start(&options);
	put_by_key(key, MLX5_OPCODE_RDMA_READ, HERE, THERE, 600);
	ring(&client);
	wire_deliver_all();
	expect_cqe(&client_cq, 0, 0);
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE + 4096, THERE + 4096, 600, 0, 0);
	ring(&client);
	kept.full = true;
	wire_receive(first_of(MESSAGE_READ_REQUEST));
	wire_deliver_all();
	assert_int_equal(hca_mr_deregister(key), 0);
	make_room(UINT32_MAX);
	wire_deliver_all();
	expect_cqe(&client_cq, 1, 0);
	assert_memory_equal(device.memory + HERE + 4096, device.memory + THERE + 4096, 600);
	expect_no_more();
}

/*
 * The key ends before the answer has left for the first time: the requester cannot have it, and gets an error
 * (9.7.4.1.5).
 */
TEST(key_ends_before_the_answer_leaves)
{
	struct ibv_qp_attr options = options_of(1, 1);
	struct mkey *key = register_memory();

	start(&options);
	put_by_key(key, MLX5_OPCODE_RDMA_READ, HERE, THERE, 600);
	ring(&client);
	kept.full = true;
	wire_deliver_all();
	wire_receive(first_of(MESSAGE_READ_REQUEST));
	assert_int_equal(hca_mr_deregister(key), 0);
	wire_receive(first_of(MESSAGE_READ_REQUEST));
	make_room(UINT32_MAX);
	wire_deliver_all();
	expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}

/* False repetitions, or ones that name other memory than the request: no byte changes, and the connection survives. */
TEST(repetitions_of_a_stranger)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA};
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = options_of(4, 4);

	for (size_t o = 0; o < sizeof(opcodes); o++) {
		struct wire_packet wrong;

		start(&options);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 1024, 64, 0, 0);
		put_request(&client, opcodes[o], HERE, THERE, 8, 0, 0);
		ring(&client);
		wire_deliver_all();
		expect_cqe(&client_cq, 0, 0);
		expect_cqe(&client_cq, 1, 0);
		memcpy(before, device.memory, sizeof(before));
		wrong = kept.packet[1];
		assert_int_equal(wrong.psn, psn_add(SQ_START_PSN, 1));
		wrong.rkey ^= 0x100;
		wire_receive(&wrong);
		wrong = kept.packet[1];
		wrong.remote_address += sizeof(device.memory);
		wire_receive(&wrong);
		wrong.remote_address = (uintptr_t)device.memory + THERE + 1;
		wrong.swap_add = wrong.compare = 17;
		wire_receive(&wrong);
		/*
		 * With the number of the WRITE, and of a packet before the connection: neither belonged to a READ or an
		 * atomic.
		 */
		for (uint32_t back = 1; back < 3; back++) {
			uint32_t count = kept.count;

			wrong = kept.packet[1];
			wrong.psn = psn_add(wrong.psn, PSN_MASK + 1 - back);
			wire_receive(&wrong);
			assert_int_equal(kept.count, count);
		}
		wire_deliver_all();
		assert_memory_equal(device.memory, before, sizeof(before));
		expect_no_more();
	}
}

/* A NAK that waits for room takes precedence over the acknowledgement of a repetition that arrives after it (9.7.5.2.2). */
TEST(refusal_is_kept)
{
	struct ibv_qp_attr options = options_of(1, 1);
	struct wire_packet *lost;

	start(&options);
	for (uint32_t i = 0; i < 3; i++)
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 16 * i, 16, 0, 0);
	ring(&client);
	wire_deliver();
	lost = wire_take();
	assert_int_equal(lost->psn, psn_add(SQ_START_PSN, 1));
	free(lost);
	kept.full = true;
	wire_deliver_all();
	wire_receive(&kept.packet[0]);
	kept.count = 0;
	make_room(UINT32_MAX);
	wire_deliver_all();
	assert_int_equal(first_of(MESSAGE_ACKNOWLEDGE)->psn, psn_add(SQ_START_PSN, 1));
	for (uint16_t i = 0; i < 3; i++)
		expect_cqe(&client_cq, i, 0);
	expect_no_more();
}

/* The network duplicates an RNR NAK: that counts as one refusal, and rnr_retry allows one (9.7.5.2.8; ibv_modify_qp(3)). */
TEST(doubled_refusal_counts_once)
{
	struct ibv_qp_attr options = options_of(1, 1);
	struct wire_packet *refusal;

	options.rnr_retry = 1;
	start(&options);
	put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 16, 0, 0);
	ring(&client);
	wire_deliver();
	refusal = wire_take();
	assert_int_equal(refusal->syndrome & AETH_KIND_MASK, AETH_RNR_NAK);
	wire_receive(refusal);
	wire_receive(refusal);
	free(refusal);
	post_receive(&device, &server, THERE, 16);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	expect_receive(0, 16);
	expect_no_more();
}

int main(void)
{
	return run_cases(.setup = wire_open, .teardown = wire_close);
}
