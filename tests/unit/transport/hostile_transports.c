/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Malformed packets for live responders of UC, UD, XRC and DC, as in hostile_packets.c for RC: headers, lengths, order,
 * sequence numbers, keys. IBTA volume 1, 9.6 to 9.8, defines the reaction: an unreliable transport drops the packet
 * silently and continues; XRC refuses it as RC does; a DCT refuses it, which ends only the connection. No byte outside
 * the offered memory ever changes.
 */
#include "test_case.h"

#include "../support/hostile_victims.h"

#include "transport/control/commands.h"

enum { FILL = 0xd1, SHORT = 99, READ_BYTES = 100 };

/* ---- valid packets ---------------------------------------------------------------------------------------------- */

/* Opcodes as for RC. */
static const struct shape {
	uint8_t opcode;
	const char *name;
	int first; /* opcode of the packet that must come before, or -1 */
	bool reth, atomic, imm;
	uint32_t payload;
} shapes[] = {
	{0x00, "SEND first", -1, false, false, false, MTU},
	{0x01, "SEND middle", 0x00, false, false, false, MTU},
	{0x02, "SEND last", 0x00, false, false, false, SHORT},
	{0x03, "SEND last with immediate", 0x00, false, false, true, SHORT},
	{0x04, "SEND only", -1, false, false, false, SHORT},
	{0x05, "SEND only with immediate", -1, false, false, true, SHORT},
	{0x06, "WRITE first", -1, true, false, false, MTU},
	{0x07, "WRITE middle", 0x06, false, false, false, MTU},
	{0x08, "WRITE last", 0x06, false, false, false, SHORT},
	{0x0a, "WRITE only", -1, true, false, false, SHORT},
	{0x0c, "READ request", -1, true, false, false, 0},
	{0x13, "compare-and-swap", -1, false, true, false, 0},
	{0x14, "fetch-and-add", -1, false, true, false, 0},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define SEND_ONLY (&shapes[4])
#define WRITE_ONLY (&shapes[9])

static bool is_datagram(void)
{
	return victim->type == IBV_QPT_UD;
}

static bool has(const struct shape *shape)
{
	if (is_datagram())
		return shape->opcode == 0x04 || shape->opcode == 0x05;
	return victim->atomics || shape->payload;
}

static bool sends(const struct shape *shape)
{
	return shape->opcode <= 0x05;
}

static bool writes(const struct shape *shape)
{
	return shape->opcode >= 0x06 && shape->opcode <= 0x0a;
}

static bool ends_message(const struct shape *shape)
{
	return shape->payload != MTU;
}

static const struct shape *first_of(const struct shape *shape)
{
	return shape->first == 0x00 ? &shapes[0] : &shapes[6];
}

/* Returns the length of the whole message that @shape begins. A message with a middle packet ends with a short one. */
static uint32_t length_of(const struct shape *shape, bool with_middle)
{
	if (shape->opcode == 0x0c)
		return READ_BYTES;
	return ends_message(shape) ? SHORT : MTU + SHORT + (with_middle ? MTU : 0);
}

static void fail_here(const struct shape *shape, const char *what)
{
	fail_msg("%s, %s: %s", victim->name, shape->name, what);
}

/* Returns the bytes of the headers. */
static uint32_t build(const struct shape *shape, bool with_middle)
{
	uint32_t headers;

	begin_packet(shape->opcode);
	if (shape->reth)
		frame_reth(&frame, window_address(), mkey_number(window), length_of(shape, with_middle));
	if (shape->atomic)
		frame_atomic_eth(&frame, window_address() + 8, mkey_number(window), 1, 0);
	if (shape->imm)
		frame_put(&frame, 0x01020304, 4);
	headers = frame.length;
	frame_payload(&frame, FILL, shape->payload);
	return headers;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static void memory_is_right(const struct shape *shape)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg("%s, %s: byte %#zx is %02x, not %02x", victim->name, shape->name, i, device.memory[i],
				 expected[i]);
}

/* Returns the syndrome of the one answer, or -1: silence. */
static int answer(const struct shape *shape)
{
	struct wire_packet *packet = wire_take(), *more;
	int syndrome = -1;

	if (packet) {
		syndrome = packet->syndrome;
		assert_int_equal(packet->destination_qpn, PEER);
	}
	more = wire_take();
	if (more)
		fail_here(shape, "two answers");
	free(packet);
	return syndrome;
}

static void expect_silence(const struct shape *shape, const char *what)
{
	if (answer(shape) >= 0)
		fail_here(shape, what);
}

static void expect_alive(const struct shape *shape)
{
	enum ibv_qp_state state = hca_qp_state(target);

	if (state != IBV_QPS_RTR && state != IBV_QPS_RTS)
		fail_here(shape, "the queue pair has left its state");
}

static void expect_received(const struct shape *shape, uint32_t bytes)
{
	const struct mlx5_cqe64 *cqe = (const struct mlx5_cqe64 *)raw_cq_poll(&cq);

	if (!cqe || cqe->op_own >> 4 == MLX5_CQE_RESP_ERR || be32toh(cqe->byte_cnt) != bytes)
		fail_here(shape, "no good completion");
}

/* Index of the next receive: each received message used one. */
static uint32_t receive_at;

static void change_memory(const struct shape *shape, uint32_t bytes)
{
	uint32_t at = (shape->first < 0 ? 0 : MTU) + (is_datagram() ? GRH : 0);

	if (writes(shape))
		memset(expected + WINDOW + at, FILL, bytes);
	if (!sends(shape))
		return;
	/* The GRH is not checked here. */
	if (is_datagram())
		memcpy(expected + receive_at, device.memory + receive_at, GRH);
	memset(expected + receive_at + at, FILL, bytes);
}

/* Expects the packet in `frame`, with @bytes of payload, to be valid. */
static void expect_good(const struct shape *shape, uint32_t bytes)
{
	uint64_t original;
	int syndrome;

	memcpy(&original, expected + WINDOW + 8, 8);
	original++;
	if (shape->opcode == 0x14)
		memcpy(expected + WINDOW + 8, &original, 8);
	if (!feed())
		fail_here(shape, "a good packet is none");
	syndrome = answer(shape);
	if (syndrome != (victim->reliable ? ACKNOWLEDGED : -1))
		fail_here(shape, "a good packet is not answered as it should be");
	change_memory(shape, bytes);
	memory_is_right(shape);
	expect_alive(shape);
	if (!sends(shape) || !ends_message(shape))
		return;
	expect_received(shape, bytes + (shape->first < 0 ? 0 : MTU) + (is_datagram() ? GRH : 0));
	receive_at += RECEIVE_BYTES;
}

/* Makes a new victim, and sends the packet before @shape, if it needs one. */
static void begin(const struct shape *shape)
{
	bool with_middle = !ends_message(shape);

	victim_renew();
	receive_at = RECEIVES;
	if (shape->first < 0)
		return;
	build(first_of(shape), with_middle);
	expect_good(first_of(shape), MTU);
}

/* Expects another message to be received. */
static void expect_next(void)
{
	const struct shape *next = is_datagram() ? SEND_ONLY : WRITE_ONLY;

	begin_connection();
	build(next, false);
	expect_good(next, SHORT);
}

/*
 * Feeds `frame`, which is ignored without an answer; then the valid packet @good, which it replaced, is accepted as
 * usual.
 */
static void expect_ignored(const struct shape *shape, const char *what)
{
	feed();
	expect_silence(shape, what);
	memory_is_right(shape);
	expect_alive(shape);
	assert_null(raw_cq_poll(&cq));
	build(shape, !ends_message(shape));
	expect_good(shape, shape->payload);
}

/*
 * Feeds `frame`, which is refused: an unreliable responder drops it and accepts the next message; otherwise a NAK of
 * @code.
 */
static void expect_refused(const struct shape *shape, enum nak_code code, const char *what)
{
	int syndrome;

	feed();
	syndrome = answer(shape);
	if (syndrome != (victim->reliable ? AETH_NAK | (int)code : -1))
		fail_here(shape, what);
	memory_is_right(shape);
	if (victim->type == IBV_QPT_XRC_RECV) {
		assert_int_equal(hca_qp_state(target), IBV_QPS_ERR);
		return;
	}
	expect_alive(shape);
	/* A receive that a refused message of DC had used ends in error; others wait for the next message. */
	if (victim->reliable)
		raw_cq_poll(&cq);
	assert_null(raw_cq_poll(&cq));
	expect_next();
}

#define FOR_EACH(shape)                                                                                                \
	for (victim = victims; victim < victims + VICTIMS; victim_unmake(), victim++)                                  \
		for (const struct shape *shape = shapes; shape < shapes + SHAPES; shape++)                             \
			if (has(shape))

TEST(good_packets)
{
	FOR_EACH(shape)
	{
		begin(shape);
		build(shape, !ends_message(shape));
		expect_good(shape, shape->payload);
	}
}

/* ---- headers and lengths ---------------------------------------------------------------------------------------- */

/*
 * Truncates at each byte. Without its headers, or with a missing pad, it is not a packet (9.6.1). If only payload is
 * missing, it is a shorter SEND, or of a wrong length (9.7.4.1.6, 9.8.2.2).
 */
TEST(truncated)
{
	FOR_EACH(shape)
	{
		uint32_t length = UINT32_MAX;

		for (uint32_t cut = 0; cut < length; cut++) {
			uint32_t headers, pad = -shape->payload & 3;

			begin(shape);
			headers = build(shape, !ends_message(shape));
			length = frame.length;
			frame.length = cut;
			if (cut < headers || (cut - headers) % 4 || cut - headers < pad)
				expect_ignored(shape, "truncated");
			else if (sends(shape) && ends_message(shape))
				expect_good(shape, cut - headers - pad);
			else
				expect_refused(shape, NAK_INVALID_REQUEST, "too short");
		}
	}
}

/* 9.6.1.1: transport version, partition: silence; reserved fields and congestion marks: ignored. */
TEST(spoilt_headers)
{
	FOR_EACH(shape)
	{
		for (uint32_t version = 1; version < 16; version++) {
			begin(shape);
			build(shape, !ends_message(shape));
			frame.byte[FRAME_FLAGS] |= (uint8_t)version;
			expect_ignored(shape, "transport version");
		}
		for (uint32_t bit = 0; bit < 15; bit++) {
			begin(shape);
			build(shape, !ends_message(shape));
			frame.byte[FRAME_P_KEY + 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
			expect_ignored(shape, "partition");
		}
		begin(shape);
		build(shape, !ends_message(shape));
		frame.byte[FRAME_ECN] = 0xff;
		frame.byte[FRAME_ACKNOWLEDGE] |= 0x7f;
		frame.byte[FRAME_FLAGS] ^= 0x40;
		expect_good(shape, shape->payload);
	}
}

/* Undefined opcodes, those of other transports, and unsolicited answers: silence. */
TEST(other_opcodes)
{
	for (victim = victims; victim < victims + VICTIMS; victim_unmake(), victim++) {
		const struct shape *shape = is_datagram() ? SEND_ONLY : WRITE_ONLY;

		begin(shape);
		for (uint32_t opcode = 0; opcode < 256; opcode++) {
			const struct packet_opcode *known = &packet_opcodes[opcode];
			bool own = known->name && known->transport == target->transport->packets;

			if (own && !message_has(known->message, MESSAGE_IS_RESPONSE))
				continue;
			for (uint32_t payload = 0; payload <= 64; payload += 4) {
				frame_begin(&frame, (uint8_t)opcode, target->number, expected_psn());
				frame_payload(&frame, 0, payload);
				expect_ignored(shape, "opcode");
				receive_at = RECEIVES;
				if (is_datagram()) {
					begin(shape);
				}
			}
		}
	}
}

/* The reserved codes of XRC, and FLUSH (annex A19): NAK for an invalid request (9.7.4.1), with any bytes after BTH. */
TEST(unsupported_opcodes)
{
	static const uint8_t opcodes[] = {0xb5, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbe, 0xbf};

	for (victim = victims; victim < victims + VICTIMS; victim_unmake(), victim++) {
		if (victim->type != IBV_QPT_XRC_RECV)
			continue;
		for (size_t i = 0; i < sizeof(opcodes); i++) {
			for (uint32_t payload = 0; payload <= 64; payload += 16) {
				begin(WRITE_ONLY);
				frame_begin(&frame, opcodes[i], target->number, expected_psn());
				frame_payload(&frame, 0, payload);
				expect_refused(WRITE_ONLY, NAK_INVALID_REQUEST, "unsupported opcode");
			}
		}
	}
}

/* 9.7.4.1.6: a full packet with a pad has a wrong length. */
TEST(wrong_lengths)
{
	static const uint32_t lengths[] = {0, 1, 4, 252, 255, 257, 260, 512, 8192};

	FOR_EACH(shape)
	{
		for (size_t l = 0; shape->payload && l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			uint32_t bytes = lengths[l];

			/* A datagram of any length that fits its receive is valid; longer ones are dropped. */
			if (is_datagram() && bytes < 8192)
				continue;
			begin(shape);
			frame.length = build(shape, !ends_message(shape));
			frame_payload(&frame, FILL, bytes);
			if (sends(shape) && ends_message(shape) && bytes <= MTU && (bytes || shape->first < 0))
				expect_good(shape, bytes);
			else
				expect_refused(shape, NAK_INVALID_REQUEST, "length");
		}
	}
}

/* ---- order and sequence numbers --------------------------------------------------------------------------------- */

static void set_psn(uint32_t psn)
{
	frame.byte[FRAME_PSN] = (uint8_t)(psn >> 16);
	frame.byte[FRAME_PSN + 1] = (uint8_t)(psn >> 8);
	frame.byte[FRAME_PSN + 2] = (uint8_t)psn;
}

/* A packet that continues a message, where none is in progress, or one of the other kind. */
TEST(out_of_order)
{
	FOR_EACH(shape)
	{
		const struct shape *other = sends(shape) ? &shapes[6] : &shapes[0];

		if (shape->first < 0)
			continue;
		victim_renew();
		receive_at = RECEIVES;
		build(shape, false);
		expect_refused(shape, NAK_INVALID_REQUEST, "no message");
		victim_renew();
		receive_at = RECEIVES;
		build(other, false);
		expect_good(other, MTU);
		build(shape, false);
		expect_refused(shape, NAK_INVALID_REQUEST, "of another message");
	}
}

/*
 * 9.7.5.1.5: an old number is acknowledged, not executed; one ahead gets one NAK. UC loses the message, and accepts the
 * first packet of another (9.8.2.2.2).
 */
TEST(other_numbers)
{
	static const int32_t away[] = {-1, -2, -1000, -(1 << 22), 1, 2, 1000, 1 << 22};

	FOR_EACH(shape)
	{
		for (size_t i = 0; i < sizeof(away) / sizeof(away[0]) && !is_datagram(); i++) {
			int syndrome;

			begin(shape);
			build(shape, !ends_message(shape));
			/* A connection is unknown before its first packet. */
			if (victim->type == QP_TYPE_DCT && shape->first < 0)
				expect_good(shape, shape->payload), build(shape, !ends_message(shape));
			set_psn((expected_psn() + (uint32_t)away[i]) & PSN_MASK);
			if (!victim->reliable) {
				if (shape->first < 0)
					expect_good(shape, shape->payload);
				else
					expect_refused(shape, NAK_SEQUENCE, "gap");
				continue;
			}
			feed();
			syndrome = answer(shape);
			memory_is_right(shape);
			expect_alive(shape);
			if (away[i] > 0)
				assert_int_equal(syndrome, AETH_NAK | NAK_SEQUENCE);
			else if (shape->payload)
				assert_int_equal(syndrome, ACKNOWLEDGED);
			feed();
			memory_is_right(shape);
			if (away[i] > 0)
				expect_silence(shape, "a second NAK");
		}
	}
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Each bit of the key, and ranges that leave the window: remote access errors (9.7.4.1.5), and nothing is transferred. */
TEST(keys_and_ranges)
{
	static const struct {
		int64_t at;
		uint32_t bytes;
	} outside[] = {{-1, SHORT},           {-SHORT, SHORT},    {WINDOW_BYTES - SHORT + 1, SHORT},
		       {WINDOW_BYTES, SHORT}, {INT64_MAX, SHORT}, {INT64_MIN, SHORT}};

	FOR_EACH(shape)
	{
		if (shape->opcode != 0x0a && shape->opcode != 0x0c)
			continue;
		for (uint32_t bit = 0; bit < 32; bit++) {
			uint32_t key = mkey_number(window) ^ 1u << bit;

			if (mkey_find(device.hca, key))
				continue;
			begin(shape);
			begin_packet(shape->opcode);
			frame_reth(&frame, window_address(), key, SHORT);
			frame_payload(&frame, FILL, shape->payload);
			expect_refused(shape, NAK_REMOTE_ACCESS, "key");
		}
		for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
			begin(shape);
			begin_packet(shape->opcode);
			frame_reth(&frame, window_address() + (uint64_t)outside[i].at, mkey_number(window),
				   outside[i].bytes);
			frame_payload(&frame, FILL, shape->payload);
			expect_refused(shape, NAK_REMOTE_ACCESS, "range");
		}
	}
}

/* Fields that identify a peer: the Q_Key of a datagram (9.6.1.4), the SRQ of XRC (annex A14), the access key of a DCT. */
TEST(transport_headers)
{
	for (victim = victims + 1; victim < victims + VICTIMS; victim_unmake(), victim++) {
		uint32_t bits = victim->type == QP_TYPE_DCT ? 64 : victim->type == IBV_QPT_UD ? 32 : 24;

		for (uint32_t bit = 0; bit < bits; bit++) {
			begin(SEND_ONLY);
			build(SEND_ONLY, false);
			/* They are first in their header, which is the first after BTH; 8 bits of XRCETH are reserved. */
			frame.byte[FRAME_BTH + (bits == 24) + bits / 8 - 1 - bit / 8] ^= (uint8_t)(1u << bit % 8);
			expect_refused(SEND_ONLY, victim->type == QP_TYPE_DCT ? NAK_REMOTE_ACCESS : NAK_INVALID_REQUEST,
				       "another's header");
		}
	}
}

int main(void)
{
	return run_cases(.setup = victims_open, .teardown = victims_close);
}
