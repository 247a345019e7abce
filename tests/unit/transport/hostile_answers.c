/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-made answers for a live RC QP with requests in flight (IBTA volume 1, 9.7.5 and 9.7.6): acknowledgements of each
 * number, refusals of each kind at each packet, responses of wrong kind, length and order, each truncated at each byte.
 * Packets that are not answers are ignored, and the true answers then find their requests; rule violations end the
 * request as the IBTA specifies. Only the targets of READs and atomics are ever written.
 */
#include "test_case.h"

#include "explain/explain.h"
#include "../support/hostile_fixture.h"

/*
 * In flight: a WRITE of three packets, a READ of three, a fetch-and-add, a SEND. In numbers from the first on: 0 to 2, 3
 * to 5, 6, 7.
 */
enum {
	FILL = 0xd1,
	BYTES = 600,
	SINK = HALF + 512, /* of the READ, in memory of the victim */
	RESULT = HALF + 256,
	REQUESTS = 4,
	WRITE_PSN = 0,
	READ_PSN = 3,
	ATOMIC_PSN = 6,
	SEND_PSN = 7,
	BEHIND = 8,
	ORIGINAL = 0x11223344,
};

static void take_all(void)
{
	struct wire_packet *packet;

	while ((packet = wire_take()))
		free(packet);
}

static void begin(void)
{
	hostile_begin();
	put_request(&server, MLX5_OPCODE_RDMA_WRITE, HALF + 4096, 0, BYTES, 0, 0);
	put_request(&server, MLX5_OPCODE_RDMA_READ, SINK, 0, BYTES, 0, 0);
	put_request(&server, MLX5_OPCODE_ATOMIC_FA, RESULT, 64, 8, 0, 0);
	put_request(&server, MLX5_OPCODE_SEND, HALF + 4096, 0, 100, 0, 0);
	ring(&server);
	take_all();
}

static uint32_t number(uint32_t place)
{
	return psn_add(SQ_START_PSN, place);
}

static void begin_answer(uint8_t opcode, uint32_t place)
{
	frame_begin(&frame, opcode, server.qp->number, number(place));
	frame.byte[FRAME_ACKNOWLEDGE] = 0;
}

static void build_acknowledge(uint32_t place, uint8_t syndrome)
{
	begin_answer(RC_ACKNOWLEDGE, place);
	frame_aeth(&frame, syndrome, 1);
}

/* Syndrome of answers in expect_intact(): AETH_ACK, with a count of credits. */
static uint8_t acknowledged;

static void build_response(uint8_t opcode, uint32_t place, uint32_t bytes)
{
	begin_answer(opcode, place);
	if (opcode != RC_READ_RESPONSE_MIDDLE)
		frame_aeth(&frame, acknowledged, 1);
	frame_payload(&frame, FILL, bytes);
}

static void build_result(uint32_t place)
{
	begin_answer(RC_ATOMIC_ACKNOWLEDGE, place);
	frame_aeth(&frame, acknowledged, 1);
	frame_put(&frame, ORIGINAL, 8);
}

/* Expects the next completions to be those of @count requests from @first on. */
static void expect_completions(const char *what, uint16_t first, uint16_t count, uint8_t syndrome)
{
	for (uint16_t i = first; i < first + count; i++) {
		const struct mlx5_err_cqe *cqe = raw_cq_poll(&server_cq);
		uint8_t got;

		if (!cqe)
			fail_msg("%s: request %u has no completion", what, i);
		got = cqe->op_own >> 4 == MLX5_CQE_REQ_ERR ? cqe->syndrome : 0;
		if (got != syndrome || be16toh(cqe->wqe_counter) != i)
			fail_msg("%s: request %u ends with %#x instead of request %u with %#x", what,
				 be16toh(cqe->wqe_counter), got, i, syndrome);
	}
}

static void expect_no_completion(const char *what)
{
	if (raw_cq_poll(&server_cq))
		fail_msg("%s: a request completes", what);
}

/* Answers the three packets of the READ, from packet @from on. */
static void answer_read(uint32_t from)
{
	static const uint8_t opcodes[] = {RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_LAST};

	for (uint32_t i = from; i < 3; i++) {
		build_response(opcodes[i], READ_PSN + i, i < 2 ? HOSTILE_MTU : BYTES - 2 * HOSTILE_MTU);
		assert_true(feed());
	}
	memset(hostile_expected + SINK, FILL, BYTES);
}

/* Expects true answers to complete all requests from @first on; @placed packets of the READ have already arrived. */
static void expect_intact(const char *what, uint16_t first, uint32_t placed)
{
	const uint64_t original = ORIGINAL;

	memory_is_right(what);
	expect_no_completion(what);
	expect_state(what, IBV_QPS_RTS);
	if (first == 0) {
		build_acknowledge(WRITE_PSN + 2, acknowledged);
		assert_true(feed());
		expect_completions(what, 0, 1, 0);
	}
	answer_read(placed);
	expect_completions(what, 1, 1, 0);
	build_result(ATOMIC_PSN);
	assert_true(feed());
	memcpy(hostile_expected + RESULT, &original, 8);
	expect_completions(what, 2, 1, 0);
	build_acknowledge(SEND_PSN, acknowledged);
	assert_true(feed());
	expect_completions(what, 3, 1, 0);
	memory_is_right(what);
	expect_state(what, IBV_QPS_RTS);
	take_all();
}

/* ---- acknowledgements ------------------------------------------------------------------------------------------- */

/* 9.7.5.1.2: an acknowledgement covers all requests before it; only a response completes a READ or an atomic. */
TEST(each_number)
{
	for (uint32_t place = 0; place < BEHIND; place++) {
		begin();
		build_acknowledge(place, AETH_ACK);
		assert_true(feed());
		if (place >= WRITE_PSN + 2)
			expect_completions("acknowledged", 0, 1, 0);
		expect_intact("acknowledged", place >= WRITE_PSN + 2, 0);
	}
}

/*
 * 9.7.7.2: any credit count of a foreign responder, also zero, acknowledges, and later requests are sent: a missing
 * receive causes an RNR NAK.
 */
TEST(any_credits)
{
	struct wire_packet *sent;

	for (acknowledged = 0; acknowledged < 0x20; acknowledged++) {
		begin();
		expect_intact("credits", 0, 0);
		put_request(&server, MLX5_OPCODE_SEND, HALF + 4096, 0, 100, 0, 0);
		ring(&server);
		sent = wire_take();
		assert_non_null(sent);
		free(sent);
		build_acknowledge(SEND_PSN + 1, acknowledged);
		assert_true(feed());
		expect_completions("after the credits", REQUESTS, 1, 0);
	}
	acknowledged = 0;
}

/* Numbers that were never sent, or were acknowledged long ago: ghosts. */
TEST(ghosts)
{
	static const uint8_t syndromes[] = {0x00, 0x1f, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63};
	static const uint32_t places[] = {BEHIND,   BEHIND + 1,      1000,    (1u << 23) - 1,
					  1u << 23, PSN_MASK - 1000, PSN_MASK};

	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
		for (size_t s = 0; s < sizeof(syndromes); s++) {
			/*
			 * A NAK for the packet right before the first is invalid, but that packet is acknowledged
			 * already.
			 */
			begin();
			build_acknowledge(places[p], syndromes[s]);
			feed();
			expect_silence("a ghost");
			expect_intact("a ghost", 0, 0);
		}
		begin();
		build_response(RC_READ_RESPONSE_ONLY, places[p], HOSTILE_MTU);
		assert_true(feed());
		expect_silence("a ghost");
		expect_intact("a ghost", 0, 0);
		begin();
		build_result(places[p]);
		assert_true(feed());
		expect_silence("a ghost");
		expect_intact("a ghost", 0, 0);
	}
}

/* 9.7.5.1.2, table 45: reserved syndromes are ignored. */
TEST(reserved_syndromes)
{
	for (uint32_t syndrome = 0x40; syndrome < 256; syndrome++) {
		if (syndrome >= 0x60 && syndrome < 0x80)
			continue;
		begin();
		build_acknowledge(WRITE_PSN + 2, (uint8_t)syndrome);
		assert_false(feed());
		expect_silence("a reserved syndrome");
		expect_intact("a reserved syndrome", 0, 0);
	}
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static uint16_t request_of(uint32_t place)
{
	return place < READ_PSN ? 0 : place < ATOMIC_PSN ? 1 : place < SEND_PSN ? 2 : 3;
}

/*
 * 9.7.5.2: a refusal acknowledges the packets before its own, and refuses the request of its packet; table 60 names the
 * completion. It does not complete an earlier READ or atomic without a response: that would be requested again.
 */
TEST(refusals)
{
	static const struct {
		uint8_t code, syndrome;
	} codes[] = {
		{NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR},
		{NAK_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR},
		{NAK_REMOTE_OPERATION, MLX5_CQE_SYNDROME_REMOTE_OP_ERR},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (uint32_t place = 0; place < ATOMIC_PSN; place++) {
			uint16_t refused = request_of(place);

			begin();
			build_acknowledge(place, (uint8_t)(AETH_NAK | codes[i].code));
			assert_true(feed());
			expect_silence("a refusal");
			expect_completions("before the refusal", 0, refused, 0);
			expect_completions("refused", refused, 1, codes[i].syndrome);
			expect_completions("after the refusal", refused + 1, REQUESTS - 1 - refused,
					   MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
			memory_is_right("a refusal");
			expect_state("a refusal", IBV_QPS_ERR);
		}
	}
}

/* No header of RC names the sender, so an explanation takes the number of the peer from the connection. */
TEST(refusals_name_the_peer)
{
	static const struct {
		uint8_t syndrome;
		enum explain_rule rule;
		uint32_t figure; /* the number of the peer */
	} answers[] = {
		{AETH_NAK | NAK_INVALID_REQUEST, RULE_NAK_INVALID_REQUEST, 1},
		{AETH_NAK | NAK_REMOTE_ACCESS, RULE_NAK_REMOTE_ACCESS, 1},
		{AETH_NAK | NAK_REMOTE_OPERATION, RULE_NAK_REMOTE_OPERATION, 1},
		{AETH_RNR_NAK | 1, RULE_RNR_EXHAUSTED, 0},
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct explain_record record = {.rule = RULE_NONE};
		uint64_t before = 0;

		begin();
		server.qp->attr.rnr_retry = 0;
		server.qp->requester.rnr_retries_left = 0;
		build_acknowledge(WRITE_PSN, answers[i].syndrome);
		assert_true(feed());
		while (explain_previous(device.hca, server.qp->number, before, &record) &&
		       record.rule != answers[i].rule)
			before = record.serial;
		assert_int_equal(record.rule, answers[i].rule);
		assert_int_equal(record.args[answers[i].figure], client.qp->number);
		while (raw_cq_poll(&server_cq))
			;
	}
}

/* Text for unknown figures. */
TEST(figures_that_are_not_known)
{
	static const struct {
		enum explain_rule rule;
		uint64_t args[EXPLAIN_ARGS];
		const char *text;
	} records[] = {
		{RULE_PACKET_STATE,
		 {MESSAGE_WRITE, 0, 0x4012, ORIGIN_HOST, 0, 0xffffc0000207, IBV_QPS_ERR},
		 ": RDMA WRITE from host 192.0.2.7 for queue pair 0x4012, which is in state ERR: dropped"},
		{RULE_PACKET_STATE,
		 {MESSAGE_WRITE, 0x4711, 0x4012, ORIGIN_OTHER_PROCESS, 0, 0, IBV_QPS_ERR},
		 ": RDMA WRITE of queue pair 0x4711 from another process for queue pair 0x4012, which is in state ERR: dropped"},
		{RULE_PACKET_NO_QP,
		 {MESSAGE_SEND, 0, 0x4012, ORIGIN_HOST, 0x20010db800000000, 7},
		 ": SEND from host 2001:db8::7 for queue pair 0x4012, which does not exist: dropped"},
		{RULE_PACKET_TRANSPORT,
		 {MESSAGE_SEND, 0, 0x4012, 4321, 0, 0, IBV_QPT_UC},
		 ": SEND from process 4321 for queue pair 0x4012, which is of type UC: dropped"},
		{RULE_PEER_SILENT,
		 {0x4012, 30, 0},
		 ": a process that is not known, which has queue pair 0x4012, is alive"},
		{RULE_SHM_RECORD, {0, 3, 0x77}, ": field 3 of a record that a process that is not known wrote into"},
		{RULE_PEER_SILENT, {0x4012, 30, 99}, ": process 99, which has queue pair 0x4012, is alive"},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		struct explain_record record = {.rule = records[i].rule};

		memcpy(record.args, records[i].args, sizeof(records[i].args));
		explain_render("mlx5_0", &record, text, sizeof(text));
		if (!strstr(text, records[i].text))
			fail_msg("\"%s\" does not have \"%s\"", text, records[i].text);
	}
}

/* 9.7.5.2.8: after a sequence error all packets from that one on are sent again, at any point of a message. */
TEST(sequence_errors)
{
	for (uint32_t place = 0; place < ATOMIC_PSN; place++) {
		struct wire_packet *packet;

		begin();
		build_acknowledge(place, AETH_NAK | NAK_SEQUENCE);
		assert_true(feed());
		if (request_of(place))
			expect_completions("before the gap", 0, 1, 0);
		packet = wire_take();
		assert_non_null(packet);
		/* The requester knows which READ responses have arrived: none. */
		assert_int_equal(packet->psn, number(place < READ_PSN ? place : READ_PSN));
		if (place < READ_PSN)
			assert_int_equal(packet->opcode, RC_WRITE_FIRST + place);
		else
			assert_int_equal(packet->opcode, RC_READ_REQUEST);
		free(packet);
		take_all();
		expect_intact("after the gap", request_of(place), 0);
	}
}

/* ---- responses -------------------------------------------------------------------------------------------------- */

/* 9.7.6.2.4 (bad response): not the requested kind. The request fails; nothing was written. */
TEST(responses_of_another_kind)
{
	for (uint32_t place = 0; place < READ_PSN + 1; place++) {
		for (uint8_t opcode = RC_READ_RESPONSE_FIRST; opcode <= RC_ATOMIC_ACKNOWLEDGE; opcode++) {
			uint16_t wrong = request_of(place);

			if (opcode == RC_ACKNOWLEDGE || (place >= READ_PSN && opcode < RC_ACKNOWLEDGE))
				continue;
			begin();
			if (opcode == RC_ATOMIC_ACKNOWLEDGE)
				build_result(place);
			else
				build_response(opcode, place, HOSTILE_MTU);
			assert_true(feed());
			expect_silence("a response of another kind");
			expect_completions("before it", 0, wrong, 0);
			expect_completions("a response of another kind", wrong, 1, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
			memory_is_right("a response of another kind");
			expect_state("a response of another kind", IBV_QPS_ERR);
		}
	}
}

/* First and middle responses are full, the last one has exactly the rest. */
TEST(responses_of_another_length)
{
	static const uint32_t lengths[] = {0, 1, 4, 87, 88, 89, 252, 255, 257, 260, 512, BYTES, 4096};

	for (uint8_t opcode = RC_READ_RESPONSE_FIRST; opcode <= RC_READ_RESPONSE_ONLY; opcode++) {
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			begin();
			build_response(opcode, READ_PSN, lengths[l]);
			assert_true(feed());
			expect_completions("before it", 0, 1, 0);
			expect_completions("a response of another length", 1, 1, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
			memory_is_right("a response of another length");
			expect_state("a response of another length", IBV_QPS_ERR);
		}
	}
}

/* A gap in a response, or a repeated part: ignored; the missing part is requested again later (9.7.6.1). */
TEST(responses_in_another_order)
{
	begin();
	build_response(RC_READ_RESPONSE_MIDDLE, READ_PSN + 1, HOSTILE_MTU);
	assert_true(feed());
	expect_completions("overtaken", 0, 1, 0);
	take_all();
	expect_intact("overtaken", 1, 0);
	begin();
	build_response(RC_READ_RESPONSE_FIRST, READ_PSN, HOSTILE_MTU);
	for (int times = 0; times < 3; times++) {
		assert_true(feed());
		memset(hostile_expected + SINK, FILL, HOSTILE_MTU);
		if (!times)
			expect_completions("three times", 0, 1, 0);
		memory_is_right("three times");
	}
	take_all();
	expect_intact("three times", 1, 1);
}

/* ---- cut off ---------------------------------------------------------------------------------------------------- */

/* Truncates at each byte; without whole words of payload it is a response of another length. */
TEST(truncated)
{
	for (int kind = 0; kind < 3; kind++) {
		uint32_t length = UINT32_MAX;

		for (uint32_t cut = 0; cut < length; cut++) {
			begin();
			if (kind == 0)
				build_acknowledge(WRITE_PSN + 2, AETH_ACK);
			else if (kind == 1)
				build_result(ATOMIC_PSN);
			else
				build_response(RC_READ_RESPONSE_FIRST, READ_PSN, HOSTILE_MTU);
			length = frame.length;
			if (feed_bytes(frame.byte, cut)) {
				assert_true(kind == 2 && cut >= FRAME_BTH + 4 && cut % 4 == 0);
				expect_completions("before it", 0, 1, 0);
				expect_completions("cut off", 1, 1, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
				memory_is_right("cut off");
				continue;
			}
			assert_true(kind != 2 || cut < FRAME_BTH + 4 || cut % 4);
			expect_silence("cut off");
			expect_intact("cut off", 0, 0);
		}
	}
}

int main(void)
{
	return run_cases(.setup = hostile_open, .teardown = hostile_close);
}
