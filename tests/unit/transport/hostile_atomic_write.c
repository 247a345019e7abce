/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATOMIC WRITE (IBTA annex A19) between a live RC QP and a foreign one: requests that Linux rxe has sent
 * (tests/data/rxe) and hand-made ones for the responder, hand-made answers for the requester. Also requests with an
 * unsupported opcode, among them FLUSH of the same annex.
 */
#include "test_case.h"

#include "../support/hostile_fixture.h"

enum { RC_FLUSH = 0x1c, RC_ATOMIC_WRITE = 0x1d, PAYLOAD = 8, AT = 64, VALUE = 0x5a };

/* rxe-6.12-atomic-write.pcapng: from BTH to payload, the request and one of its repetitions, with address 0. */
static const uint8_t captured[][36] = {
	{0x1d, 0x00, 0xff, 0xff, 0x00, 0x6b, 0x80, 0x00, 0x80, 0x8b, 0x45, 0x67, 0x00, 0x00, 0x7f, 0x70, 0x68, 0x7f,
	 0xe0, 0x10, 0x59, 0x10, 0x83, 0xc6, 0x00, 0x00, 0x00, 0x08, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
	{0x1d, 0x00, 0xff, 0xff, 0x00, 0x6b, 0x80, 0x00, 0x80, 0x8b, 0x45, 0x67, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	 0x00, 0x00, 0x59, 0x10, 0x83, 0xc6, 0x00, 0x00, 0x00, 0x08, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
};

/* rxe-6.12-flush-bad-icrc.pcapng: the request from BTH on. */
static const uint8_t captured_flush[] = {0x1c, 0x00, 0xff, 0xff, 0x00, 0xcb, 0x28, 0x00, 0x80, 0x8b, 0x45,
					 0x67, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x7f, 0x2d, 0xfe, 0x33,
					 0xd0, 0x00, 0xc0, 0x6e, 0x05, 0xeb, 0x00, 0x00, 0x10, 0x00};

/* Reserved codes of RC (table 38), and FLUSH. */
static const uint8_t unsupported[] = {0x15, 0x18, 0x19, 0x1a, 0x1b, RC_FLUSH, 0x1e, 0x1f};

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void put_at(uint32_t at, uint64_t value, uint32_t bytes)
{
	struct frame_bytes field = {0};

	frame_put(&field, value, bytes);
	memcpy(frame.byte + at, field.byte, bytes);
}

/* Builds a captured packet with the numbers of this connection. */
static void build_captured(const uint8_t *bytes, uint32_t length, uint32_t psn)
{
	memcpy(frame.byte, bytes, length);
	frame.length = length;
	put_at(FRAME_DESTINATION, server.qp->number, 3);
	put_at(FRAME_PSN, psn & 0xffffff, 3);
}

static void build_captured_write(uint32_t psn, uint64_t address)
{
	build_captured(captured[0], sizeof(captured[0]), psn);
	put_at(FRAME_BTH, address, 8);
	put_at(FRAME_BTH + 8, mkey_number(window), 4);
}

/* Builds the next ATOMIC WRITE: RETH with @length, and @payload bytes. */
static void build(uint64_t address, uint32_t rkey, uint32_t length, uint32_t payload)
{
	begin_next(RC_ATOMIC_WRITE);
	frame_reth(&frame, address, rkey, length);
	frame_payload(&frame, VALUE, payload);
}

static void build_good(void)
{
	build(window_address() + AT, mkey_number(window), PAYLOAD, PAYLOAD);
}

/* Expects the response of an ATOMIC WRITE: RDMA READ response only, without payload. */
static void expect_response(const char *what, uint32_t psn)
{
	struct wire_packet *answer = wire_take();

	if (!answer)
		fail_msg("%s: silence", what);
	if (answer->opcode != RC_READ_RESPONSE_ONLY || answer->psn != (psn & 0xffffff) || answer->length ||
	    answer->syndrome != ACKNOWLEDGED || answer->destination_qpn != client.qp->number)
		fail_msg("%s: %s of %06x with %u bytes, syndrome %02x", what, packet_opcodes[answer->opcode].name,
			 answer->psn, answer->length, answer->syndrome);
	free(answer);
	expect_silence(what);
}

static void expect_written(const char *what, uint32_t psn)
{
	memset(hostile_expected + WINDOW + AT, VALUE, PAYLOAD);
	memory_is_right(what);
	expect_response(what, psn);
	assert_int_equal(expected_psn(), psn_add(psn, 1));
	expect_state(what, IBV_QPS_RTS);
}

/* ---- the responder ---------------------------------------------------------------------------------------------- */

/* Executes the request of rxe once, and answers its repetitions, in which rxe sends address 0, like the request. */
TEST(a_captured_request)
{
	uint32_t psn;

	hostile_begin();
	psn = expected_psn();
	build_captured_write(psn, window_address() + AT);
	assert_true(feed());
	memcpy(hostile_expected + WINDOW + AT, captured[0] + 28, PAYLOAD);
	memory_is_right("captured");
	expect_response("captured", psn);
	/* A second execution would undo another write in between. */
	memset(device.memory + WINDOW + AT, 0xee, PAYLOAD);
	memset(hostile_expected + WINDOW + AT, 0xee, PAYLOAD);
	for (int i = 0; i < 3; i++) {
		build_captured(captured[1], sizeof(captured[1]), psn);
		assert_true(feed());
		expect_response("repeated", psn);
		memory_is_right("repeated");
	}
	assert_int_equal(expected_psn(), psn_add(psn, 1));
	expect_ignored("after the repetitions");
}

/* The response is sent whether an acknowledgement is requested or not, and counts as a message. */
TEST(without_request_for_acknowledgement)
{
	uint32_t msn;

	hostile_begin();
	msn = server.qp->responder.msn;
	build_good();
	frame.byte[FRAME_ACKNOWLEDGE] &= 0x7f;
	assert_true(feed());
	expect_written("AckReq clear", psn_add(expected_psn(), PSN_MASK));
	assert_int_equal(server.qp->responder.msn, msn + 1);
}

/* 8 bytes are announced and sent; otherwise the request is invalid. */
TEST(lengths)
{
	static const struct {
		uint32_t length, payload;
	} wrong[] = {{8, 0}, {8, 4}, {8, 7}, {8, 9}, {8, 12}, {8, 16}, {0, 0},
		     {0, 8}, {4, 4}, {4, 8}, {7, 7}, {16, 8}, {16, 16}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		hostile_begin();
		build(window_address() + AT, mkey_number(window), wrong[i].length, wrong[i].payload);
		assert_true(feed());
		expect_refused("length", NAK_INVALID_REQUEST, psn_add(expected_psn(), 0));
	}
}

TEST(addresses)
{
	for (uint32_t offset = 1; offset < PAYLOAD; offset++) {
		hostile_begin();
		build(window_address() + AT + offset, mkey_number(window), PAYLOAD, PAYLOAD);
		assert_true(feed());
		expect_refused("alignment", NAK_INVALID_REQUEST, expected_psn());
	}
	for (int after = 0; after < 2; after++) {
		hostile_begin();
		build(window_address() + (after ? (uint64_t)WINDOW_BYTES : -(uint64_t)PAYLOAD), mkey_number(window),
		      PAYLOAD, PAYLOAD);
		assert_true(feed());
		expect_refused("range", NAK_REMOTE_ACCESS, expected_psn());
	}
	hostile_begin();
	build(window_address() + AT, mkey_number(window) ^ 1, PAYLOAD, PAYLOAD);
	assert_true(feed());
	expect_refused("key", NAK_REMOTE_ACCESS, expected_psn());
}

/* An ATOMIC WRITE needs the right of a WRITE, and a responder resource. */
TEST(rights)
{
	hostile_begin();
	server.qp->attr.qp_access_flags &= ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC;
	build_good();
	assert_true(feed());
	expect_written("without remote atomic", psn_add(expected_psn(), PSN_MASK));
	hostile_begin();
	server.qp->attr.qp_access_flags &= ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
	build_good();
	assert_true(feed());
	expect_refused("without remote write", NAK_INVALID_REQUEST, expected_psn());
	hostile_begin();
	server.qp->attr.max_dest_rd_atomic = 0;
	build_good();
	assert_true(feed());
	expect_refused("without resources", NAK_INVALID_REQUEST, expected_psn());
}

TEST(order)
{
	uint32_t first;

	/* Ahead of a gap: the NAK names the gap, nothing is written, and the missing request is executed. */
	hostile_begin();
	build_good();
	put_at(FRAME_PSN, psn_add(expected_psn(), 1), 3);
	assert_true(feed());
	expect_acknowledge("ahead", AETH_NAK | NAK_SEQUENCE, expected_psn());
	memory_is_right("ahead");
	build_good();
	assert_true(feed());
	expect_written("in order", psn_add(expected_psn(), PSN_MASK));
	/* A repetition that is no longer stored is dropped (9.7.5.1.5). */
	hostile_begin();
	first = expected_psn();
	for (uint32_t i = 0; i <= server.qp->responder.resources; i++) {
		build_good();
		assert_true(feed());
		expect_written("many", psn_add(expected_psn(), PSN_MASK));
	}
	build_good();
	put_at(FRAME_PSN, first, 3);
	assert_true(feed());
	expect_ignored("forgotten");
	/* A repetition of another kind of request is dropped, too. */
	hostile_begin();
	expect_ignored("nothing yet");
	build_good();
	put_at(FRAME_PSN, psn_add(expected_psn(), PSN_MASK), 3);
	assert_true(feed());
	expect_ignored("repetition of a WRITE");
}

/* ---- unsupported opcodes ---------------------------------------------------------------------------------------- */

/* In sequence: NAK for an invalid request (9.7.4.1, 9.7.5.2.4), with any bytes after BTH. */
TEST(unsupported_opcodes)
{
	for (size_t i = 0; i < sizeof(unsupported); i++) {
		for (uint32_t payload = 0; payload <= 64; payload += 4) {
			hostile_begin();
			begin_next(unsupported[i]);
			frame_payload(&frame, 0, payload);
			assert_true(feed());
			expect_refused("unsupported opcode", NAK_INVALID_REQUEST, expected_psn());
		}
	}
	hostile_begin();
	build_captured(captured_flush, sizeof(captured_flush), expected_psn());
	assert_true(feed());
	expect_refused("FLUSH", NAK_INVALID_REQUEST, expected_psn());
}

/* Ahead of a gap: NAK for the gap (9.7.4.1.1). A repetition is dropped. Neither ends the connection. */
TEST(unsupported_out_of_sequence)
{
	for (size_t i = 0; i < sizeof(unsupported); i++) {
		hostile_begin();
		begin_next(unsupported[i]);
		put_at(FRAME_PSN, psn_add(expected_psn(), 1), 3);
		assert_true(feed());
		expect_acknowledge("ahead", AETH_NAK | NAK_SEQUENCE, expected_psn());
		expect_ignored("ahead");
		begin_next(unsupported[i]);
		put_at(FRAME_PSN, psn_add(expected_psn(), PSN_MASK), 3);
		assert_true(feed());
		expect_ignored("repetition");
	}
}

/* Within a message, too. */
TEST(unsupported_within_a_message)
{
	hostile_begin();
	begin_next(RC_WRITE_FIRST);
	frame_reth(&frame, window_address(), mkey_number(window), 2 * HOSTILE_MTU);
	frame_payload(&frame, VALUE, HOSTILE_MTU);
	assert_true(feed());
	memset(hostile_expected + WINDOW, VALUE, HOSTILE_MTU);
	expect_acknowledge("first packet", ACKNOWLEDGED, psn_add(expected_psn(), PSN_MASK));
	begin_next(RC_FLUSH);
	assert_true(feed());
	expect_refused("within a message", NAK_INVALID_REQUEST, expected_psn());
}

/* ---- the requester ---------------------------------------------------------------------------------------------- */

static void take_request(const char *what, uint8_t opcode, uint32_t psn)
{
	struct wire_packet *packet = wire_take();

	if (!packet)
		fail_msg("%s: nothing is sent", what);
	if (packet->opcode != opcode || packet->psn != (psn & 0xffffff))
		fail_msg("%s: %02x of %06x", what, packet->opcode, packet->psn);
	if (opcode == RC_ATOMIC_WRITE) {
		assert_int_equal(packet->dma_length, PAYLOAD);
		assert_int_equal(packet->length, PAYLOAD);
		assert_int_equal(packet->remote_address, (uintptr_t)device.memory + 128);
		assert_memory_equal(packet->payload, device.memory + HALF, PAYLOAD);
	}
	free(packet);
}

static void post_atomic_write(void)
{
	put_request(&server, WQE_OPCODE_ATOMIC_WRITE, HALF, 128, PAYLOAD, 0, 0);
}

static void answer(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t payload)
{
	frame_begin(&frame, opcode, server.qp->number, psn);
	frame.byte[FRAME_ACKNOWLEDGE] = 0;
	frame_aeth(&frame, syndrome, 1);
	frame_payload(&frame, VALUE, payload);
	assert_true(feed());
}

static void expect_end(const char *what, uint16_t index, uint8_t syndrome)
{
	const struct mlx5_err_cqe *cqe = raw_cq_poll(&server_cq);

	if (!cqe)
		fail_msg("%s: no completion", what);
	assert_int_equal(cqe->op_own >> 4 == MLX5_CQE_REQ_ERR ? cqe->syndrome : 0, syndrome);
	assert_int_equal(be16toh(cqe->wqe_counter), index);
	memory_is_right(what);
}

/* It is sent as opcode 0x1d and ends with the response of rxe; an acknowledgement alone does not end it. */
TEST(a_response)
{
	hostile_begin();
	post_atomic_write();
	ring(&server);
	take_request("ATOMIC WRITE", RC_ATOMIC_WRITE, SQ_START_PSN);
	answer(RC_ACKNOWLEDGE, SQ_START_PSN, ACKNOWLEDGED, 0);
	assert_null(raw_cq_poll(&server_cq));
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED, 0);
	expect_end("answered", 0, 0);
	expect_state("answered", IBV_QPS_RTS);
	/* A repeated response is a ghost. */
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED, 0);
	expect_ignored("a second response");
}

/* A response with payload, or for another kind of request, is bad (9.7.6.2.4). */
TEST(bad_responses)
{
	for (uint32_t kind = 0; kind < 4; kind++) {
		hostile_begin();
		post_atomic_write();
		ring(&server);
		take_request("ATOMIC WRITE", RC_ATOMIC_WRITE, SQ_START_PSN);
		if (kind == 3) {
			frame_begin(&frame, RC_ATOMIC_ACKNOWLEDGE, server.qp->number, SQ_START_PSN);
			frame_aeth(&frame, ACKNOWLEDGED, 1);
			frame_put(&frame, 0, 8);
			assert_true(feed());
		} else {
			answer(kind == 2 ? RC_READ_RESPONSE_FIRST : RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED,
			       kind == 0   ? 4
			       : kind == 1 ? PAYLOAD
					   : 0);
		}
		expect_end("bad response", 0, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
		expect_state("bad response", IBV_QPS_ERR);
	}
}

TEST(refusals)
{
	static const uint8_t syndromes[] = {MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
					    MLX5_CQE_SYNDROME_REMOTE_OP_ERR};

	for (uint8_t code = NAK_INVALID_REQUEST; code <= NAK_REMOTE_OPERATION; code++) {
		hostile_begin();
		post_atomic_write();
		ring(&server);
		take_request("ATOMIC WRITE", RC_ATOMIC_WRITE, SQ_START_PSN);
		answer(RC_ACKNOWLEDGE, SQ_START_PSN, AETH_NAK | code, 0);
		expect_end("refused", 0, syndromes[code - NAK_INVALID_REQUEST]);
	}
}

/* After a NAK for a gap the requester resends the ATOMIC WRITE and the request after it. */
TEST(sent_again)
{
	hostile_begin();
	post_atomic_write();
	put_request(&server, MLX5_OPCODE_RDMA_READ, HALF + 512, 0, PAYLOAD, 0, 0);
	ring(&server);
	take_request("first", RC_ATOMIC_WRITE, SQ_START_PSN);
	take_request("second", RC_READ_REQUEST, SQ_START_PSN + 1);
	answer(RC_ACKNOWLEDGE, SQ_START_PSN, AETH_NAK | NAK_SEQUENCE, 0);
	take_request("again", RC_ATOMIC_WRITE, SQ_START_PSN);
	take_request("again, after it", RC_READ_REQUEST, SQ_START_PSN + 1);
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED, 0);
	expect_end("answered", 0, 0);
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN + 1, ACKNOWLEDGED, PAYLOAD);
	memset(hostile_expected + HALF + 512, VALUE, PAYLOAD);
	expect_end("READ", 1, 0);
}

/*
 * As many are in flight as the peer has resources for (max_rd_atomic, 4), including READs and atomics; a fence waits for
 * them.
 */
TEST(outstanding)
{
	hostile_begin();
	for (int i = 0; i < 5; i++)
		post_atomic_write();
	ring(&server);
	for (uint32_t i = 0; i < 4; i++)
		take_request("out", RC_ATOMIC_WRITE, SQ_START_PSN + i);
	expect_silence("the fifth");
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED, 0);
	expect_end("the first", 0, 0);
	take_request("the fifth", RC_ATOMIC_WRITE, SQ_START_PSN + 4);
	hostile_begin();
	post_atomic_write();
	put_request(&server, MLX5_OPCODE_SEND, HALF, 0, PAYLOAD, 0, MLX5_WQE_CTRL_FENCE);
	ring(&server);
	take_request("before the fence", RC_ATOMIC_WRITE, SQ_START_PSN);
	expect_silence("after the fence");
	answer(RC_READ_RESPONSE_ONLY, SQ_START_PSN, ACKNOWLEDGED, 0);
	expect_end("before the fence", 0, 0);
	take_request("after the fence", RC_SEND_ONLY, SQ_START_PSN + 1);
}

/* A WQE that a program wrote itself, with another length. */
TEST(another_length)
{
	static const uint32_t wrong[] = {0, 4, 7, 9, 16};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		hostile_begin();
		put_request(&server, WQE_OPCODE_ATOMIC_WRITE, HALF, 128, wrong[i], 0, 0);
		ring(&server);
		expect_end("another length", 0, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
		expect_silence("another length");
	}
}

int main(void)
{
	return run_cases(.group_setup = hostile_open, .group_teardown = hostile_close);
}
