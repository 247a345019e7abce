/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC over a wire: messages of several DCIs to several DCTs, split at the path MTU, each of their packets in turn lost,
 * duplicated or overtaken, then many at random. Each arrives once, in the order of its DCI; a DCT keeps its initiators
 * separate.
 */
#include "test_case.h"

#include "../../model/choose.h"
#include "format/qp_types.h"
#include "../support/dc_fixture.h"
#include "../support/mishap.h"

enum { IMMEDIATE = 0x1a2b3c4d, SLOT = 1024 };

static const uint8_t opcodes[] = {MLX5_OPCODE_SEND,           MLX5_OPCODE_SEND_IMM,  MLX5_OPCODE_RDMA_WRITE,
				  MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA,
				  MLX5_OPCODE_ATOMIC_CS};

#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

/* Expected memory after all messages of a test. */
static uint8_t expected[sizeof(device.memory)];

static void start(const struct ibv_qp_attr *options, uint32_t errored_streams, wire_filter *filter, void *argument)
{
	dc_begin(options, errored_streams, filter, argument);
	memcpy(expected, device.memory, sizeof(expected));
}

static void compare_memory(void)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg("byte %#zx is %02x, not %02x", i, device.memory[i], expected[i]);
}

static void expect_message(const struct dc_request *request)
{
	uint8_t *here = expected + request->local, *there = expected + request->remote;
	uint64_t before, after;

	if (opcode_is_atomic(request->opcode)) {
		memcpy(&before, there, 8);
		/* The compare value is 0, which differs from memory. */
		after = request->opcode == MLX5_OPCODE_ATOMIC_FA ? before + ATOMIC_OPERAND : before;
		memcpy(there, &after, 8);
		memcpy(here, &before, 8);
	} else if (request->opcode == MLX5_OPCODE_RDMA_READ) {
		memcpy(here, there, request->length);
	} else {
		memcpy(there, here, request->length);
	}
}

/* Posts the message of slot @slot from DCI @from to DCT @to, with its receive. Returns the index of its WQE. */
static uint16_t put_message(int from, int to, uint8_t opcode, uint32_t slot, uint32_t length)
{
	struct dc_request request =
		dc_to(&dct[to], opcode, slot * SLOT, HALF + slot * SLOT, opcode_is_atomic(opcode) ? 8 : length);

	request.imm = IMMEDIATE + slot;
	if (opcode_takes_receive(opcode))
		dct_post(&dct[to], request.remote, SLOT);
	expect_message(&request);
	return dc_put(&dci[from], &request);
}

/* ---- splitting ------------------------------------------------------------------------------------------------- */

static uint32_t packets(uint8_t opcode, uint32_t length, uint32_t mtu)
{
	uint32_t cut = length ? (length + mtu - 1) / mtu : 1;

	return opcode_is_atomic(opcode) ? 2 : cut + 1;
}

TEST(every_length)
{
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_512; mtu++) {
		uint32_t bytes = 128u << mtu;
		const uint32_t lengths[] = {0, 1, 8, bytes - 1, bytes, bytes + 1, 2 * bytes - 1, 2 * bytes, SLOT};
		struct ibv_qp_attr options = dc_options();

		options.path_mtu = (enum ibv_mtu)mtu;
		for (size_t o = 0; o < OPCODES; o++) {
			for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
				start(&options, 0, NULL, NULL);
				put_message(0, 0, opcodes[o], 0, lengths[l]);
				ring(&dci[0]);
				dc_deliver_all();
				expect_cqe(&dci_cq[0], 0, 0);
				if (opcode_takes_receive(opcodes[o]))
					expect_received(&dct[0], 0, lengths[l]);
				expect_quiet();
				compare_memory();
				assert_int_equal(wire_sent(), packets(opcodes[o], lengths[l], bytes));
				/* Nothing is pending any more. */
				assert_true(wire_rests());
				dc_end();
			}
		}
	}
}

/* ---- one connection at a time ---------------------------------------------------------------------------------- */

/* The packets sent, with their targets. */
struct notes {
	uint8_t message[64];
	uint32_t to[64];
	uint64_t connection[64];
	uint64_t count;
};

static enum wire_verdict note(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct notes *notes = argument;

	assert_true(number <= 64);
	notes->message[number - 1] = packet_opcodes[packet->opcode].message;
	notes->to[number - 1] = packet->destination_qpn;
	notes->connection[number - 1] = packet->dc_connection;
	notes->count = number;
	return WIRE_PASS;
}

/*
 * Requests to the same target follow each other; a request to another target waits until all have been answered and the
 * target has been left.
 */
TEST(targets_one_by_one)
{
	static const uint8_t to_of_five[] = {0, 0, 1, 1, 0};
	/* w: WRITE, a: acknowledgement, d: disconnect, each with the number of the DCT, a at the DCI. */
	static const char sequence[] = "w0w0a.a.d0w1w1a.a.d1w0a.";
	struct ibv_qp_attr options = dc_options();
	struct notes notes = {0};

	start(&options, 0, note, &notes);
	for (uint32_t i = 0; i < 5; i++)
		put_message(0, to_of_five[i], MLX5_OPCODE_RDMA_WRITE, i, 100);
	ring(&dci[0]);
	assert_int_equal(notes.count, 2);
	dc_deliver_all();
	assert_int_equal(notes.count, strlen(sequence) / 2);
	for (uint64_t i = 0; i < notes.count; i++) {
		uint8_t message = notes.message[i];
		char letter = message == MESSAGE_WRITE ? 'w' : message == MESSAGE_ACKNOWLEDGE ? 'a' : 'd';
		uint32_t to = letter == 'a' ? dci[0].qp->number : dct[sequence[2 * i + 1] - '0'].qp->number;

		assert_int_equal(letter, sequence[2 * i]);
		assert_int_equal(notes.to[i], to);
	}
	/* Each connection has a new number, larger than the one before; its end has the same number. */
	assert_int_equal(notes.connection[1], notes.connection[0]);
	assert_int_equal(notes.connection[4], notes.connection[0]);
	assert_int_equal(notes.connection[5], notes.connection[0] + 1);
	assert_int_equal(notes.connection[10], notes.connection[0] + 2);
	for (uint16_t i = 0; i < 5; i++)
		expect_cqe(&dci_cq[0], (uint16_t)(2 * i), 0);
	expect_quiet();
	compare_memory();
	assert_int_equal(dct[0].qp->dct->count, 1);
	assert_false(dct[0].qp->dct->all->left);
	assert_true(dct[1].qp->dct->all->left);
	dc_end();
}

/* Another stream, key or source address is another connection, too. */
TEST(streams_one_by_one)
{
	struct ibv_qp_attr options = dc_options();
	struct notes notes = {0};

	start(&options, 4, note, &notes);
	for (uint32_t i = 0; i < 3; i++) {
		struct dc_request request = dc_to(&dct[0], MLX5_OPCODE_RDMA_WRITE, i * SLOT, HALF + i * SLOT, 8);

		request.stream = (uint16_t)(i / 2);
		dc_put(&dci[0], &request);
		expect_message(&request);
	}
	ring(&dci[0]);
	assert_int_equal(notes.count, 2);
	dc_deliver_all();
	assert_int_equal(notes.count, 2 * 3 + 1);
	compare_memory();
	dc_end();
}

/* ---- mishaps --------------------------------------------------------------------------------------------------- */

enum { BATCH = 6 };

/*
 * Two DCIs at once. The first sends every kind of message, and changes its target after two of them; the second keeps
 * the first target, and uses no receives of it.
 */
static void batch(size_t first, uint32_t length, const struct mishap *mishap)
{
	static const uint8_t quiet[] = {MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_RDMA_WRITE};
	uint16_t received[DCTS] = {0, 0}, index[2][BATCH];

	for (uint32_t i = 0; i < BATCH; i++)
		index[0][i] = put_message(0, i / 2 % 2, opcodes[(first + i) % OPCODES], i, length);
	for (uint32_t i = 0; i < BATCH; i++)
		index[1][i] = put_message(1, 0, quiet[(first + i) % 3], BATCH + i, length);
	ring(&dci[0]);
	ring(&dci[1]);
	dc_settle();
	for (uint32_t i = 0; i < BATCH; i++) {
		uint8_t opcode = opcodes[(first + i) % OPCODES];

		if (hca_qp_state(dci[0].qp) != IBV_QPS_RTS || hca_qp_state(dci[1].qp) != IBV_QPS_RTS)
			fail_msg("batch %zu of %u bytes ends in error: verdict %d on packet %lu", first, length,
				 mishap->verdict, mishap->number);
		expect_cqe(&dci_cq[0], index[0][i], 0);
		expect_cqe(&dci_cq[1], index[1][i], 0);
		if (opcode_takes_receive(opcode))
			expect_received(&dct[i / 2 % 2], received[i / 2 % 2]++, length);
	}
	expect_quiet();
	compare_memory();
}

TEST(one_mishap)
{
	static const uint32_t lengths[] = {0, 700};
	struct ibv_qp_attr options = dc_options();

	for (int verdict = WIRE_DROP; verdict <= WIRE_DELAY; verdict++) {
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			for (size_t first = 0; first < OPCODES; first++) {
				struct mishap mishap = {.verdict = (enum wire_verdict)verdict};

				while (mishap_next(&mishap)) {
					start(&options, 0, mishap_filter, &mishap);
					batch(first, lengths[l], &mishap);
					dc_end();
				}
			}
		}
	}
}

/* ---- many, at random ------------------------------------------------------------------------------------------- */

enum { ROUNDS = 200, MESSAGES = 24, BURST = 4, SIZES = 600 };

static struct choose c;

/* Writes message @number of DCI @from: sender, number, and a pattern. */
static void write_message(uint8_t *at, int from, uint32_t number, uint32_t bytes)
{
	at[0] = (uint8_t)from;
	at[1] = (uint8_t)number;
	for (uint32_t i = 2; i < bytes; i++)
		at[i] = (uint8_t)(i * 5 + (uint32_t)from * 77 + number);
}

struct sent {
	uint32_t bytes, to;
};

/* Places of the entries of each SRQ. */
static uint32_t place_of[DCTS][SRQ_ENTRIES];

static void post_one(uint32_t t)
{
	uint32_t place = HALF + (t * BURST * DCIS + dct[t].posted % (BURST * DCIS)) * SLOT;

	place_of[t][dct[t].posted % SRQ_ENTRIES] = place;
	dct_post(&dct[t], place, SLOT);
}

/* SENDs of all DCIs share the SRQs: each receive of @t holds the next complete message of one of them to @t. */
static void check_received(uint32_t t, struct sent sent[DCIS][MESSAGES], uint32_t next[DCIS])
{
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)raw_cq_poll(&dct[t].cq);
	uint8_t pattern[2 + SIZES];
	uint32_t from, number;
	const uint8_t *at;

	assert_non_null(cqe);
	assert_int_not_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
	at = device.memory + place_of[t][be16toh(cqe->wqe_counter)];
	from = at[0];
	number = at[1];
	assert_true(from < DCIS && number < MESSAGES);
	while (next[from] < number && sent[from][next[from]].to != t)
		next[from]++;
	assert_int_equal(number, next[from]++);
	assert_int_equal(sent[from][number].to, t);
	assert_int_equal(be32toh(cqe->byte_cnt), sent[from][number].bytes);
	assert_int_equal(be32toh(cqe->flags_rqpn) & 0xffffff, dci[from].qp->number);
	write_message(pattern, (int)from, number, sent[from][number].bytes);
	assert_memory_equal(at, pattern, sent[from][number].bytes);
}

/* Sends some messages of each DCI to any target on any stream; the receives for the second half are posted late. */
static void burst(uint32_t first, struct sent sent[DCIS][MESSAGES], uint32_t next[DCTS][DCIS])
{
	uint32_t count[DCTS] = {0, 0}, posted[DCTS];

	for (uint32_t number = first; number < first + BURST; number++) {
		for (int from = 0; from < DCIS; from++) {
			uint32_t place = ((uint32_t)from * BURST + number % BURST) * SLOT;
			struct sent *message = &sent[from][number];
			struct dc_request request;

			message->to = (uint32_t)choose_below(&c, DCTS);
			message->bytes = 2 + (uint32_t)choose_below(&c, SIZES);
			write_message(device.memory + place, from, number, message->bytes);
			request = dc_to(&dct[message->to], MLX5_OPCODE_SEND, place, 0, message->bytes);
			request.stream = (uint16_t)choose_below(&c, 3);
			dc_put(&dci[from], &request);
			count[message->to]++;
		}
	}
	for (uint32_t t = 0; t < DCTS; t++)
		posted[t] = dct[t].posted;
	for (int half = 0; half < 2; half++) {
		for (uint32_t t = 0; t < DCTS; t++)
			while (dct[t].posted - posted[t] < (half ? count[t] : count[t] / 2))
				post_one(t);
		for (int from = 0; from < DCIS; from++)
			ring(&dci[from]);
		for (int i = 0; !half && i < 60; i++)
			if (!wire_deliver())
				wire_clock_next();
	}
	dc_settle();
	for (uint32_t t = 0; t < DCTS; t++)
		for (; posted[t] != dct[t].posted; posted[t]++)
			check_received(t, sent, next[t]);
	for (int from = 0; from < DCIS; from++)
		for (uint32_t i = 0; i < BURST; i++)
			assert_int_equal(raw_cq_poll(&dci_cq[from])->op_own >> 4, MLX5_CQE_REQ);
	expect_quiet();
}

TEST(dice)
{
	struct ibv_qp_attr options = dc_options();

	options.timeout = 12;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint32_t next[DCTS][DCIS] = {{0}};
		struct sent sent[DCIS][MESSAGES];
		struct wire_dice dice = {
			.state = round, .drop = 4, .twice = 4, .delay = 4, .transports = 1u << QP_TYPE_DCI};

		c = choose_for(round, 0);
		start(&options, 4, wire_dice, &dice);
		for (uint32_t number = 0; number < MESSAGES; number += BURST)
			burst(number, sent, next);
		dc_end();
	}
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
