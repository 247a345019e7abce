/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Malformed packets for a live RC QP: each header field wrong, each length, each sequence number, with the answer that
 * IBTA volume 1, 9.6 and 9.7, requires: a NAK, or silence. No byte outside the offered memory ever changes, and after
 * silence the connection still works.
 */
#include "test_case.h"

#include "../support/hostile_fixture.h"

enum { FILL = 0xd1, SHORT = 99, READ_BYTES = 600, IMM = 0x01020304 };

/* ---- valid packets ---------------------------------------------------------------------------------------------- */

/* The kinds of requests, with the effect of a valid one of each. */
static const struct shape {
	uint8_t opcode;
	const char *name;
	int first; /* opcode of the packet that must come before, or -1 */
	bool reth, atomic, imm, ieth;
	uint32_t payload;
} shapes[] = {
	{0x00, "SEND first", -1, false, false, false, false, HOSTILE_MTU},
	{0x01, "SEND middle", 0x00, false, false, false, false, HOSTILE_MTU},
	{0x02, "SEND last", 0x00, false, false, false, false, SHORT},
	{0x03, "SEND last with immediate", 0x00, false, false, true, false, SHORT},
	{0x04, "SEND only", -1, false, false, false, false, SHORT},
	{0x05, "SEND only with immediate", -1, false, false, true, false, SHORT},
	{0x06, "WRITE first", -1, true, false, false, false, HOSTILE_MTU},
	{0x07, "WRITE middle", 0x06, false, false, false, false, HOSTILE_MTU},
	{0x08, "WRITE last", 0x06, false, false, false, false, SHORT},
	{0x09, "WRITE last with immediate", 0x06, false, false, true, false, SHORT},
	{0x0a, "WRITE only", -1, true, false, false, false, SHORT},
	{0x0b, "WRITE only with immediate", -1, true, false, true, false, SHORT},
	{0x0c, "READ request", -1, true, false, false, false, 0},
	{0x13, "compare-and-swap", -1, false, true, false, false, 0},
	{0x14, "fetch-and-add", -1, false, true, false, false, 0},
	{0x16, "SEND last with invalidate", 0x00, false, false, false, true, SHORT},
	{0x17, "SEND only with invalidate", -1, false, false, false, true, SHORT},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static bool writes(const struct shape *shape)
{
	return shape->opcode >= RC_WRITE_FIRST && shape->opcode <= 0x0b;
}

static bool sends(const struct shape *shape)
{
	return shape->opcode < RC_WRITE_FIRST || shape->opcode > RC_FETCH_ADD;
}

static bool ends_message(const struct shape *shape)
{
	return shape->payload != HOSTILE_MTU;
}

/* Returns the RETH length of a message that begins with @shape: a first packet is followed by a last one. */
static uint32_t length_of(const struct shape *shape)
{
	return shape->opcode == RC_WRITE_FIRST    ? HOSTILE_MTU + SHORT
	       : shape->opcode == RC_READ_REQUEST ? READ_BYTES
						  : SHORT;
}

/* Returns the bytes of the headers. */
static uint32_t build(const struct shape *shape)
{
	uint32_t headers;

	begin_next(shape->opcode);
	if (shape->reth)
		frame_reth(&frame, window_address(), mkey_number(window), length_of(shape));
	if (shape->atomic)
		frame_atomic_eth(&frame, window_address() + 8, mkey_number(window), 1, 0);
	if (shape->imm)
		frame_put(&frame, IMM, 4);
	if (shape->ieth)
		frame_put(&frame, mkey_number(invalidated), 4);
	headers = frame.length;
	frame_payload(&frame, FILL, shape->payload);
	return headers;
}

static void change_memory(const struct shape *shape, uint32_t bytes)
{
	uint32_t at = shape->first < 0 ? 0 : HOSTILE_MTU;

	if (writes(shape))
		memset(hostile_expected + WINDOW + at, FILL, bytes);
	if (sends(shape))
		memset(hostile_expected + RECEIVES + at, FILL, bytes);
}

/*
 * Sends the packet that must come before, and takes its answer. For a middle packet the whole WRITE is two packets and a
 * short one.
 */
static void prepare(const struct shape *shape)
{
	uint32_t length = HOSTILE_MTU + (ends_message(shape) ? SHORT : HOSTILE_MTU + SHORT);

	if (shape->first < 0)
		return;
	begin_next((uint8_t)shape->first);
	if (writes(shape))
		frame_reth(&frame, window_address(), mkey_number(window), length);
	frame_payload(&frame, FILL, HOSTILE_MTU);
	assert_true(feed());
	memset(hostile_expected + (writes(shape) ? WINDOW : RECEIVES), FILL, HOSTILE_MTU);
	expect_acknowledge("first packet", ACKNOWLEDGED, psn_add(expected_psn(), PSN_MASK));
	memory_is_right("first packet");
}

static void expect_read_responses(const struct shape *shape, uint32_t psn)
{
	static const uint8_t opcodes[] = {RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_LAST};

	for (uint32_t i = 0; i < 3; i++) {
		struct wire_packet *answer = wire_take();

		if (!answer)
			fail_msg("%s: %u of 3 responses", shape->name, i);
		assert_int_equal(answer->opcode, opcodes[i]);
		assert_int_equal(answer->psn, psn_add(psn, i));
		assert_int_equal(answer->length, i < 2 ? HOSTILE_MTU : READ_BYTES - 2 * HOSTILE_MTU);
		assert_memory_equal(answer->payload, device.memory + WINDOW + i * HOSTILE_MTU, answer->length);
		free(answer);
	}
	expect_silence(shape->name);
}

static void expect_atomic_response(const struct shape *shape, uint32_t psn, uint64_t original)
{
	struct wire_packet *answer = wire_take();

	if (!answer)
		fail_msg("%s: no answer", shape->name);
	assert_int_equal(answer->opcode, RC_ATOMIC_ACKNOWLEDGE);
	assert_int_equal(answer->psn, psn);
	assert_true(answer->original == original);
	free(answer);
	expect_silence(shape->name);
}

/* Expects the packet in `frame`, with @payload bytes of payload, to be valid. */
static void expect_good(const struct shape *shape, uint32_t payload)
{
	uint32_t psn = expected_psn();
	uint64_t original;

	memcpy(&original, hostile_expected + WINDOW + 8, 8);
	if (shape->opcode == RC_FETCH_ADD) {
		uint64_t after = original + 1;

		memcpy(hostile_expected + WINDOW + 8, &after, 8);
	}
	assert_true(feed());
	if (shape->opcode == RC_READ_REQUEST)
		expect_read_responses(shape, psn);
	else if (shape->atomic)
		expect_atomic_response(shape, psn, original);
	else
		expect_acknowledge(shape->name, ACKNOWLEDGED, psn);
	change_memory(shape, payload);
	memory_is_right(shape->name);
	expect_state(shape->name, IBV_QPS_RTS);
	if (sends(shape) && ends_message(shape)) {
		const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)raw_cq_poll(&server_cq);

		assert_non_null(cqe);
		assert_int_equal(be32toh(cqe->byte_cnt), payload + (shape->first < 0 ? 0 : HOSTILE_MTU));
	}
}

TEST(good_packets)
{
	for (size_t i = 0; i < SHAPES; i++) {
		hostile_begin();
		prepare(&shapes[i]);
		build(&shapes[i]);
		expect_good(&shapes[i], shapes[i].payload);
	}
}

/*
 * ibv_destroy_qp(3) first resets the QP. A packet that arrives before the QP is gone is not explained, unlike one for a QP
 * that is not ready.
 */
TEST(packets_during_destruction)
{
	for (int destroyed = 0; destroyed < 2; destroyed++) {
		struct explain_record record;

		hostile_begin();
		prepare(&shapes[0]);
		build(&shapes[0]);
		queue_lock(&server.qp->lock);
		server.qp->destroyed = destroyed;
		server.qp->state = IBV_QPS_RESET;
		queue_unlock(&server.qp->lock);
		assert_true(feed_bytes(frame.byte, frame.length));
		assert_true(explain_previous(device.hca, server.qp->number, 0, &record));
		assert_int_equal(record.rule, RULE_PACKET_STATE);
		assert_int_equal(server.qp->early != NULL, !destroyed);
		assert_true(record.subject.expected);
	}
}

/* ---- truncated -------------------------------------------------------------------------------------------------- */

/*
 * Truncates at each byte. Without its headers, or with a missing pad, it is not a packet (9.6.1: silence). If only
 * payload is missing, the ICRC would detect it; as a packet it is a shorter SEND, or a WRITE, or first packet, of a
 * wrong length (9.7.4.1.6).
 */
TEST(truncated)
{
	for (size_t i = 0; i < SHAPES; i++) {
		const struct shape *shape = &shapes[i];
		uint32_t length = UINT32_MAX, headers;

		for (uint32_t cut = 0; cut < length; cut++) {
			uint32_t psn, pad = -shape->payload & 3;
			bool parses;

			hostile_begin();
			prepare(shape);
			headers = build(shape);
			length = frame.length;
			parses = cut > headers && (cut - headers) % 4 == 0;
			psn = expected_psn();
			if (!parses && cut != headers) {
				assert_false(feed_bytes(frame.byte, cut));
				expect_silence(shape->name);
				memory_is_right(shape->name);
				expect_good(shape, shape->payload);
			} else if (cut == headers && pad) {
				/* A pad longer than the packet. */
				assert_false(feed_bytes(frame.byte, cut));
				expect_silence(shape->name);
				expect_good(shape, shape->payload);
			} else if (sends(shape) && ends_message(shape)) {
				frame.length = cut;
				expect_good(shape, cut - headers - pad);
			} else {
				assert_true(feed_bytes(frame.byte, cut));
				expect_refused(shape->name, NAK_INVALID_REQUEST, psn);
			}
		}
	}
}

/* ---- headers ---------------------------------------------------------------------------------------------------- */

/* 9.6.1.1: transport version, partition, opcode, destination: silence; reserved fields and congestion marks: ignored. */
TEST(spoilt_headers)
{
	for (size_t i = 0; i < SHAPES; i++) {
		const struct shape *shape = &shapes[i];

		for (uint32_t version = 1; version < 16; version++) {
			hostile_begin();
			prepare(shape);
			build(shape);
			frame.byte[FRAME_FLAGS] |= (uint8_t)version;
			assert_false(feed());
			expect_silence("transport version");
			frame.byte[FRAME_FLAGS] &= 0xf0;
			expect_good(shape, shape->payload);
		}
		for (uint32_t bit = 0; bit < 15; bit++) {
			hostile_begin();
			prepare(shape);
			build(shape);
			frame.byte[FRAME_P_KEY + 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_false(feed());
			expect_silence("partition");
			frame.byte[FRAME_P_KEY + 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
			expect_good(shape, shape->payload);
		}
		hostile_begin();
		prepare(shape);
		build(shape);
		frame.byte[FRAME_ECN] = 0xff;
		frame.byte[FRAME_ACKNOWLEDGE] |= 0x7f;
		frame.byte[FRAME_FLAGS] ^= 0x40;
		expect_good(shape, shape->payload);
	}
}

/* A limited member of the partition may send to a full one (10.9.1.1). */
TEST(limited_member)
{
	hostile_begin();
	build(&shapes[4]);
	frame.byte[FRAME_P_KEY] = 0x7f;
	expect_good(&shapes[4], SHORT);
}

/* Returns true for a reserved code of RC, or one of an unsupported operation: NAK, see hostile_atomic_write.c. */
static bool is_unsupported(uint32_t opcode)
{
	return opcode == 0x15 || (opcode >= 0x18 && opcode <= 0x1f && opcode != 0x1d);
}

/* Opcodes of other transports, and reserved ones outside them: silence (9.6.1.1.1). */
TEST(other_opcodes)
{
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		for (uint32_t payload = 0; payload <= 64; payload += 4) {
			if (opcode <= 0x17 || opcode == 0x1d || is_unsupported(opcode))
				continue;
			/* Opcodes of the device, masked atomics of RC, after the range of the IBTA. */
			if (opcode == 0xd3 || opcode == 0xd4)
				continue;
			hostile_begin();
			begin_next((uint8_t)opcode);
			frame_payload(&frame, 0, payload);
			feed();
			expect_ignored("opcode");
		}
	}
}

TEST(other_destinations)
{
	for (uint32_t bit = 0; bit < 24; bit++) {
		hostile_begin();
		build(&shapes[10]);
		frame.byte[FRAME_DESTINATION + 2 - bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* The peer can receive, too: it gets a packet of its own sequence. */
		if (qp_find(roce_destination(frame.byte)))
			continue;
		assert_true(feed());
		expect_ignored("destination");
	}
}

/* 9.7.4.1.6: no pad in first and middle packets, and none longer than the payload. */
TEST(pads)
{
	for (size_t i = 0; i < SHAPES; i++) {
		for (uint32_t pad = 1; pad < 4; pad++) {
			const struct shape *shape = &shapes[i];
			uint32_t psn;

			hostile_begin();
			prepare(shape);
			build(shape);
			frame.byte[FRAME_FLAGS] = (uint8_t)((frame.byte[FRAME_FLAGS] & ~0x30) | pad << 4);
			psn = expected_psn();
			if (!shape->payload) {
				assert_false(feed());
				expect_silence(shape->name);
				frame.byte[FRAME_FLAGS] &= (uint8_t)~0x30;
				expect_good(shape, 0);
			} else if (!ends_message(shape) || (writes(shape) && pad != (-SHORT & 3))) {
				assert_true(feed());
				expect_refused(shape->name, NAK_INVALID_REQUEST, psn);
			} else {
				expect_good(shape, ((SHORT + 3) & ~3u) - pad);
			}
		}
	}
}

/* ---- lengths ---------------------------------------------------------------------------------------------------- */

/*
 * 9.7.4.1.6: first and middle packets have the MTU, a last one 1 byte to the MTU, an only one at most the MTU; WRITEs
 * the length in RETH.
 */
TEST(wrong_lengths)
{
	static const uint32_t lengths[] = {0, 1, 4, 252, 255, 257, 260, 512, 4096, 8192};

	for (size_t i = 0; i < SHAPES; i++) {
		const struct shape *shape = &shapes[i];

		for (size_t l = 0; shape->payload && l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			uint32_t bytes = lengths[l], psn;
			bool allowed = sends(shape) && ends_message(shape) && bytes <= HOSTILE_MTU &&
				       (bytes || shape->first < 0);

			hostile_begin();
			prepare(shape);
			frame.length = build(shape);
			frame_payload(&frame, FILL, bytes);
			psn = expected_psn();
			if (allowed) {
				expect_good(shape, bytes);
				continue;
			}
			assert_true(feed());
			expect_refused(shape->name, NAK_INVALID_REQUEST, psn);
		}
	}
}

/* A message longer than its receive is an invalid request (9.7.4.1.7 table 60), and no part of the packet is placed. */
TEST(longer_than_the_receive)
{
	hostile_begin();
	prepare(&shapes[1]);
	for (uint32_t i = 1; i < RECEIVE_BYTES / HOSTILE_MTU; i++) {
		begin_next(RC_SEND_MIDDLE);
		frame_payload(&frame, FILL, HOSTILE_MTU);
		assert_true(feed());
		expect_acknowledge("middle", ACKNOWLEDGED, psn_add(expected_psn(), PSN_MASK));
	}
	memset(hostile_expected + RECEIVES, FILL, RECEIVE_BYTES);
	memory_is_right("a full receive");
	begin_next(RC_SEND_LAST);
	frame_payload(&frame, FILL, 1);
	assert_true(feed());
	expect_refused("after the receive", NAK_INVALID_REQUEST, server.qp->responder.expected_psn);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

/* 9.7.4.1.3: every packet after every other. */
TEST(order_of_packets)
{
	for (size_t first = 0; first < SHAPES; first++) {
		for (size_t second = 0; second < SHAPES; second++) {
			const struct shape *a = &shapes[first], *b = &shapes[second];
			bool goes_on = !ends_message(a), continues = b->first >= 0;
			struct wire_packet *answer;
			uint32_t psn;

			if (a->first >= 0 || a->opcode == RC_READ_REQUEST || a->atomic)
				continue;
			if (goes_on == continues && (!goes_on || writes(a) == writes(b)))
				continue;
			hostile_begin();
			build(a);
			expect_good(a, a->payload);
			build(b);
			psn = expected_psn();
			assert_true(feed());
			answer = wire_take();
			if (!answer || answer->opcode != RC_ACKNOWLEDGE || answer->psn != psn ||
			    answer->syndrome != (AETH_NAK | NAK_INVALID_REQUEST))
				fail_msg("%s after %s is not refused", b->name, a->name);
			free(answer);
			memory_is_right(b->name);
			expect_state(b->name, IBV_QPS_ERR);
		}
	}
}

/* ---- sequence numbers ------------------------------------------------------------------------------------------- */

/* 9.7.5.1.5: a number older than expected, by up to half of the numbers, is a repetition: acknowledged, not executed. */
TEST(repetitions)
{
	static const uint32_t before[] = {1, 2, 3, 100, 1000, 0xffff, 0x10000, 1u << 22, (1u << 23) - 1, 1u << 23};

	for (size_t i = 0; i < SHAPES; i++) {
		for (size_t b = 0; b < sizeof(before) / sizeof(before[0]); b++) {
			const struct shape *shape = &shapes[i];
			uint32_t psn;

			hostile_begin();
			psn = psn_add(expected_psn(), (1u << 24) - before[b]);
			build(shape);
			frame.byte[FRAME_PSN] = (uint8_t)(psn >> 16);
			frame.byte[FRAME_PSN + 1] = (uint8_t)(psn >> 8);
			frame.byte[FRAME_PSN + 2] = (uint8_t)psn;
			assert_true(feed());
			/* READs and atomics that were never sent get no answer. */
			if (!shape->payload)
				expect_silence(shape->name);
			else
				expect_acknowledge(shape->name, ACKNOWLEDGED, psn_add(expected_psn(), PSN_MASK));
			expect_ignored(shape->name);
		}
	}
}

/* 9.7.5.2.8: a packet ahead gets one NAK that names the expected packet, and no second one until that packet has arrived. */
TEST(gaps)
{
	static const uint32_t ahead[] = {1, 2, 3, 100, 0xffff, 1u << 22, (1u << 23) - 1};

	for (size_t i = 0; i < SHAPES; i++) {
		for (size_t a = 0; a < sizeof(ahead) / sizeof(ahead[0]); a++) {
			const struct shape *shape = &shapes[i];

			hostile_begin();
			for (int times = 0; times < 3; times++) {
				uint32_t psn = psn_add(expected_psn(), ahead[a]);

				build(shape);
				frame.byte[FRAME_PSN] = (uint8_t)(psn >> 16);
				frame.byte[FRAME_PSN + 1] = (uint8_t)(psn >> 8);
				frame.byte[FRAME_PSN + 2] = (uint8_t)psn;
				assert_true(feed());
				if (times)
					expect_silence(shape->name);
				else
					expect_acknowledge(shape->name, AETH_NAK | NAK_SEQUENCE, expected_psn());
			}
			expect_ignored(shape->name);
		}
	}
}

int main(void)
{
	return run_cases(.setup = hostile_open, .teardown = hostile_close);
}
