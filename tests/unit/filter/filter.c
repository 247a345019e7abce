/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters and faults before a wire (wire_link.h): packets that pass are the same as without them, and faults follow the
 * script, identically in every run.
 */
#include "test_case.h"

#include "observe/counters.h"
#include "filter/faults.h"
#include "filter/filter.h"
#include "../support/wire_fixture.h"

enum { HERE = 0, THERE = HALF, MOST = 4096, MTU = 256 };

/* Packets that were on the wire. */
static struct wire_packet *seen[MOST];
static uint32_t seen_count;

static void forget(void)
{
	while (seen_count)
		free(seen[--seen_count]);
}

/* Delivers all queued packets, and keeps a copy of each. */
static void deliver_and_keep(void)
{
	struct wire_packet *packet;

	while ((packet = wire_take())) {
		assert_true(seen_count < MOST);
		wire_receive(packet);
		packet->next = NULL;
		packet->path.udp_source_port = 0; /* which filters fill in */
		seen[seen_count++] = packet;
	}
}

static void keep(void)
{
	struct wire_packet *packet;

	while ((packet = wire_take())) {
		assert_true(seen_count < MOST);
		seen[seen_count++] = packet;
	}
}

static void faults(const char *text)
{
	static struct fault_script script;
	struct fault_error error;

	assert_int_equal(fault_script_parse(&script, text, &error), 0);
	if (!script.seeded)
		script.seed = 1;
	script.seeded = true;
	assert_int_equal(filters_set_faults(device.hca, &script), 0);
}

static void no_faults(void)
{
	assert_int_equal(filters_set_faults(device.hca, NULL), 0);
}

static void begin(enum ibv_qp_type type, const char *text)
{
	struct ibv_qp_attr options = wire_options();

	forget();
	if (client.qp->type != type)
		wire_change_type(type);
	if (text)
		faults(text);
	wire_connect(&options, NULL, NULL);
}

/* Posts @count WRITEs of @bytes each, consecutive in memory. */
static void writes(uint32_t count, uint32_t bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE + i * bytes % (HALF / 2),
			    THERE + i * bytes % (HALF / 2), bytes, 0, 0);
		ring(&client);
		while (raw_cq_poll(&client_cq))
			;
	}
}

static uint32_t index_of(const struct wire_packet *packet)
{
	return psn_add(packet->psn, -(uint32_t)SQ_START_PSN);
}

/* Checks that the packets on the wire are those of these numbers (from 0), in this order; 0xffff ends the list. */
static void expect_numbers(const uint32_t *numbers)
{
	uint32_t count;

	for (count = 0; numbers[count] != 0xffff; count++) {
		assert_true(count < seen_count);
		assert_int_equal(index_of(seen[count]), numbers[count]);
	}
	assert_int_equal(seen_count, count);
}

#define EXPECT(...) expect_numbers((const uint32_t[]){__VA_ARGS__, 0xffff})

/* ---- passing through -------------------------------------------------------------------------------------------- */

/* Sends each opcode, with no packet, one and many. */
static void traffic(void)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND,      MLX5_OPCODE_SEND_IMM,       MLX5_OPCODE_RDMA_WRITE,
					  MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_ATOMIC_CS,
					  MLX5_OPCODE_ATOMIC_FA};
	static const uint32_t lengths[] = {0, 1, 255, 256, 257, 3000};

	for (size_t i = 0; i < sizeof(opcodes) * 6; i++) {
		uint8_t opcode = opcodes[i / 6];
		bool atomic = opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA;

		if (opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM ||
		    opcode == MLX5_OPCODE_RDMA_WRITE_IMM)
			post_receive(&device, &server, THERE, 4096);
		put_request(&client, opcode, HERE, THERE + 8, atomic ? 8 : lengths[i % 6], 0x1234, 0);
		ring(&client);
		deliver_and_keep();
		assert_non_null(raw_cq_poll(&client_cq));
		while (raw_cq_poll(&server_cq))
			;
	}
	expect_no_more();
}

TEST(frames_are_what_the_link_would_have_sent)
{
	struct wire_packet *plain[MOST];
	uint32_t plain_count;

	begin(IBV_QPT_RC, NULL);
	assert_null(device.hca->filters);
	traffic();
	plain_count = seen_count;
	/*
	 * Four times 18 request packets and 6 acknowledgements, 6 READs and 18 responses, 12 atomics and their 12
	 * replies.
	 */
	assert_int_equal(plain_count, 4 * (18 + 6) + 6 + 18 + 12 + 12);
	memcpy(plain, seen, sizeof(plain));
	seen_count = 0;
	/* A rule that matches nothing. */
	begin(IBV_QPT_RC, "of qp 0xffffff drop");
	assert_non_null(device.hca->filters);
	traffic();
	assert_int_equal(seen_count, plain_count);
	for (uint32_t i = 0; i < plain_count; i++) {
		assert_memory_equal(seen[i], plain[i], offsetof(struct wire_packet, payload));
		assert_memory_equal(seen[i]->payload, plain[i]->payload, plain[i]->length);
		free(plain[i]);
	}
}

/* Once the faults end, runs are no longer cut; packets in flight arrive. */
TEST(faults_end)
{
	begin(IBV_QPT_UC, "at packet 2 delay 1ms");
	writes(3, MTU);
	keep();
	EXPECT(0);
	no_faults();
	wire_clock_pass(2000000);
	keep();
	EXPECT(0, 1, 2);
	writes(1, MTU);
	keep();
	EXPECT(0, 1, 2, 3);
	begin(IBV_QPT_UC, NULL);
	writes(3, 3 * MTU);
	keep();
	assert_int_equal(seen_count, 9);
}

/* A link without room keeps frames waiting, in order, and loses none. */
static uint32_t refusals;

static bool busy(void *argument)
{
	(void)argument;
	return refusals && refusals--;
}

TEST(busy_links)
{
	begin(IBV_QPT_UC, "of qp 0xffffff drop");
	wire_behave(&(struct wire_manner){.immediate = true, .busy = busy});
	refusals = 1;
	writes(2, 2 * MTU);
	keep();
	EXPECT(0, 1, 2, 3);
	refusals = 3;
	forget();
	writes(1, MTU);
	keep();
	assert_int_equal(seen_count, 0);
	assert_int_equal(refusals, 2);
	wire_clock_pass(1000000);
	keep();
	EXPECT(4);
	assert_int_equal(refusals, 0);
}

/* ---- each fault -------------------------------------------------------------------------------------------------- */

TEST(drop)
{
	begin(IBV_QPT_UC, "at packet 3 drop 2");
	writes(3, 2 * MTU);
	keep();
	EXPECT(0, 1, 4, 5);
	begin(IBV_QPT_UC, "drop");
	writes(5, MTU);
	keep();
	assert_int_equal(seen_count, 0);
	assert_int_equal(wire_clock_left(), UINT64_MAX);
}

TEST(duplicate)
{
	begin(IBV_QPT_UC, "from packet 2 for 2 packets duplicate; at packet 3 duplicate");
	writes(4, MTU);
	keep();
	EXPECT(0, 1, 1, 2, 2, 2, 3);
	for (uint32_t i = 0; i < MTU; i++)
		assert_int_equal(seen[1]->payload[i], seen[2]->payload[i]);
}

TEST(reorder)
{
	begin(IBV_QPT_UC, "at packet 2 reorder by 3");
	writes(6, MTU);
	keep();
	EXPECT(0, 2, 3, 4, 1, 5);
	/* A packet that overtakes is itself overtaken. */
	begin(IBV_QPT_UC, "at packet 1 reorder by 2; at packet 2 reorder by 1");
	writes(4, MTU);
	keep();
	EXPECT(2, 1, 3, 0);
	/* No packet overtakes it: it is late, not lost. */
	begin(IBV_QPT_UC, "at packet 2 reorder by 3");
	writes(3, MTU);
	keep();
	EXPECT(0, 2);
	wire_clock_pass(999999);
	keep();
	EXPECT(0, 2);
	wire_clock_pass(1);
	keep();
	EXPECT(0, 2, 1);
	/* Only packets of its own QP overtake it. */
	begin(IBV_QPT_UC, "of qp 0xffffff drop; at packet 1 reorder by 1");
	writes(1, MTU);
	put_request(&server, MLX5_OPCODE_RDMA_WRITE, THERE, HERE, MTU, 0, 0);
	ring(&server);
	keep();
	assert_int_equal(seen_count, 0);
	wire_clock_pass(1000000);
	keep();
	EXPECT(0, 0);
}

TEST(delay)
{
	uint64_t shortest = UINT64_MAX, longest = 0;

	begin(IBV_QPT_UC, "delay 50us");
	writes(2, MTU);
	keep();
	assert_int_equal(seen_count, 0);
	wire_clock_pass(49999);
	keep();
	assert_int_equal(seen_count, 0);
	wire_clock_pass(1);
	keep();
	EXPECT(0, 1);
	/* Later packets do not overtake it. */
	begin(IBV_QPT_UC, "at packet 2 delay 1ms");
	writes(4, MTU);
	keep();
	EXPECT(0);
	wire_clock_pass(1000000);
	keep();
	EXPECT(0, 1, 2, 3);
	begin(IBV_QPT_UC, "delay 100us..200us");
	for (int i = 0; i < 200; i++) {
		uint64_t left;

		writes(1, MTU);
		left = wire_clock_left();
		shortest = left < shortest ? left : shortest;
		longest = left > longest ? left : longest;
		wire_clock_pass(left);
		keep();
		assert_int_equal(seen_count, i + 1);
	}
	assert_in_range(shortest, 100000, 102000);
	assert_in_range(longest, 198000, 200000);
}

static uint32_t differing_bits(const uint8_t *a, const uint8_t *b, uint32_t length)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < length; i++)
		bits += (uint32_t)__builtin_popcount(a[i] ^ b[i]);
	return bits;
}

TEST(corrupt_payload)
{
	uint8_t hit[MTU] = {0};
	uint32_t bytes_hit = 0;

	begin(IBV_QPT_UC, "corrupt payload");
	for (int i = 0; i < 200; i++) {
		const uint8_t *sent = device.memory + HERE;

		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, MTU, 0, 0);
		ring(&client);
		assert_non_null(raw_cq_poll(&client_cq));
		keep();
		assert_int_equal(seen_count, i + 1);
		assert_int_equal(differing_bits(seen[i]->payload, sent, MTU), 1);
		for (int j = 0; j < MTU; j++)
			hit[j] |= seen[i]->payload[j] != sent[j];
	}
	for (int j = 0; j < MTU; j++)
		bytes_hit += hit[j];
	/* 200 balls in 256 boxes hit about 139 boxes. */
	assert_in_range(bytes_hit, 110, 170);
	/* Packets without payload are not counted. */
	begin(IBV_QPT_UC, "at packet 2 corrupt payload");
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 100, 0, 0);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 0, 0, 0);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 100, 0, 0);
	ring(&client);
	keep();
	assert_int_equal(seen_count, 3);
	assert_int_equal(differing_bits(seen[0]->payload, device.memory + HERE, 100), 0);
	assert_int_equal(differing_bits(seen[2]->payload, device.memory + HERE, 100), 1);
}

/* The ICRC detects a change of any bit: nothing arrives, and each loss is explained. */
TEST(corrupt_frame)
{
	struct explain_record record;
	uint64_t before;

	begin(IBV_QPT_UC, "corrupt frame");
	before = explain_previous(device.hca, 0, 0, &record) ? record.serial : 0;
	writes(500, 20);
	keep();
	assert_int_equal(seen_count, 0);
	assert_true(explain_previous(device.hca, 0, 0, &record));
	assert_int_equal(record.serial - before, 500);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(record.rule, RULE_FRAME_ICRC);
		explain_previous(device.hca, 0, record.serial, &record);
	}
}

TEST(rnr)
{
	uint32_t naks = 0;

	begin(IBV_QPT_RC, "rnr 3; of qp 0xffffff drop");
	post_receive(&device, &server, THERE, 4096);
	post_receive(&device, &server, THERE + 4096, 4096);
	put_send(&device, &client, HERE, 1000);
	put_send(&device, &client, HERE, 1000);
	ring(&client);
	do
		deliver_and_keep();
	while (wire_clock_next());
	for (uint32_t i = 0; i < seen_count; i++)
		naks += packet_opcodes[seen[i]->opcode].message == MESSAGE_ACKNOWLEDGE &&
			(seen[i]->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK;
	assert_int_equal(naks, 3);
	expect_cqe(&client_cq, 0, 0);
	expect_cqe(&client_cq, 1, 0);
	expect_receive(0, 1000);
	expect_receive(1, 1000);
	expect_no_more();
}

TEST(conditions)
{
	char text[128];

	begin(IBV_QPT_UC, "on rc, ud drop; of send drop; of request at packet 2 drop; of response drop");
	writes(3, MTU);
	keep();
	EXPECT(0, 2);
	begin(IBV_QPT_UC, NULL);
	snprintf(text, sizeof(text), "of qp %u drop", client.qp->number);
	faults(text);
	writes(1, MTU);
	put_request(&server, MLX5_OPCODE_RDMA_WRITE, THERE, HERE, MTU, 0, 0);
	ring(&server);
	keep();
	assert_int_equal(seen_count, 1);
	assert_int_equal(seen[0]->destination_qpn, client.qp->number);
	snprintf(text, sizeof(text), "to qp %u drop", client.qp->number);
	faults(text);
	forget();
	writes(1, MTU);
	put_request(&server, MLX5_OPCODE_RDMA_WRITE, THERE, HERE, MTU, 0, 0);
	ring(&server);
	keep();
	assert_int_equal(seen_count, 1);
	assert_int_equal(seen[0]->destination_qpn, server.qp->number);
}

/* ---- probability ------------------------------------------------------------------------------------------------- */

enum { DRAWS = 2000 };

/* Counts which of DRAWS packets of the client arrive; @mixed: packets of the server are interleaved. */
static uint32_t survivors(const char *text, bool mixed, uint8_t *arrived)
{
	uint32_t count = 0;

	begin(IBV_QPT_UC, text);
	memset(arrived, 0, DRAWS);
	for (uint32_t i = 0; i < DRAWS; i++) {
		struct wire_packet *packet;

		writes(1, 8);
		if (mixed && i % 3 == 0) {
			put_request(&server, MLX5_OPCODE_RDMA_WRITE, THERE, HERE, 8, 0, 0);
			ring(&server);
			while (raw_cq_poll(&server_cq))
				;
		}
		while ((packet = wire_take())) {
			if (packet->destination_qpn == server.qp->number) {
				assert_int_equal(index_of(packet), i);
				arrived[i] = 1;
				count++;
			}
			free(packet);
		}
	}
	return count;
}

TEST(shares)
{
	static uint8_t arrived[DRAWS];

	/* Four standard deviations around DRAWS * (1 - share). */
	assert_in_range(survivors("drop 10%", false, arrived), 1800 - 54, 1800 + 54);
	assert_in_range(survivors("drop 50%", false, arrived), 1000 - 90, 1000 + 90);
	assert_in_range(survivors("drop 1%", false, arrived), 1980 - 18, 1980 + 18);
	assert_int_equal(survivors("drop 0%", false, arrived), DRAWS);
	assert_int_equal(survivors("drop 100%", false, arrived), 0);
}

TEST(a_seed_decides)
{
	static uint8_t one[DRAWS], again[DRAWS], mixed[DRAWS], other[DRAWS];

	survivors("drop 20%; seed 5", false, one);
	survivors("drop 20%; seed 5", false, again);
	assert_memory_equal(one, again, DRAWS);
	/* Packets of another QP do not change the result, nor does another rule. */
	survivors("drop 20%; seed 5; duplicate 0%", true, mixed);
	assert_memory_equal(one, mixed, DRAWS);
	survivors("drop 20%; seed 6", false, other);
	assert_memory_not_equal(one, other, DRAWS);
	/* Two rules draw independently: 0.8 * 0.8. */
	assert_in_range(survivors("drop 20%; drop 20%; seed 5", false, other), 1280 - 86, 1280 + 86);
}

/* ---- reliability and reports ------------------------------------------------------------------------------------- */

/* Under any faults, each request is executed once, in order. */
TEST(reliable_through_all)
{
	char text[256];

	for (int seed = 1; seed <= 30; seed++) {
		snprintf(
			text, sizeof(text),
			"drop 3%%; duplicate 3%%; reorder 3%% by 2; corrupt frame 2%%; delay 1us..20us; rnr 5%%; seed %d",
			seed);
		begin(IBV_QPT_RC, text);
		for (uint16_t i = 0; i < 24; i++) {
			uint32_t here = HERE + i * 1000, there = THERE + i * 1000;
			uint8_t opcode = i % 3 == 0   ? MLX5_OPCODE_RDMA_WRITE
					 : i % 3 == 1 ? MLX5_OPCODE_SEND
						      : MLX5_OPCODE_RDMA_READ;
			const uint8_t *from = device.memory + (opcode == MLX5_OPCODE_RDMA_READ ? there : here);
			const uint8_t *to = device.memory + (opcode == MLX5_OPCODE_RDMA_READ ? here : there);

			if (opcode == MLX5_OPCODE_SEND)
				post_receive(&device, &server, there, 1000);
			put_request(&client, opcode, here, there, 1000, 0, 0);
			ring(&client);
			wire_settle();
			expect_cqe(&client_cq, i, 0);
			if (opcode == MLX5_OPCODE_SEND)
				expect_receive((uint16_t)(server.receives - 1), 1000);
			assert_memory_equal(from, to, 1000);
			expect_no_more();
		}
	}
}

static void put_line(void *argument, const char *line)
{
	strcat(argument, line);
	strcat(argument, "\n");
}

TEST(summary_and_counters)
{
	char text[1024] = "";
	uint64_t frames, dropped;

	frames = counter_read(device.hca, COUNTER_FAULT_FRAMES);
	dropped = counter_read(device.hca, COUNTER_FAULT_DROPPED);
	begin(IBV_QPT_UC, "at packet 2 drop 2; of send duplicate; from packet 3 corrupt frame 1; seed 42");
	writes(5, MTU);
	keep();
	filters_fault_summary(device.hca, put_line, text);
	assert_string_equal(text, "faults: 5 frames, seed 42\n"
				  "faults: at packet 2 drop 2: 2 of 2\n"
				  "faults: of send duplicate: 0 of 0\n"
				  "faults: from packet 3 corrupt frame 1: 1 of 1\n");
	assert_int_equal(counter_read(device.hca, COUNTER_FAULT_FRAMES) - frames, 5);
	assert_int_equal(counter_read(device.hca, COUNTER_FAULT_DROPPED) - dropped, 2);
	no_faults();
	*text = '\0';
	filters_fault_summary(device.hca, put_line, text);
	assert_string_equal(text, "");
}

static int close_all(void **state)
{
	forget();
	return wire_close(state);
}

int main(void)
{
	return run_cases(.group_setup = wire_open, .group_teardown = close_all);
}
