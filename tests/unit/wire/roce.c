/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE headers: every opcode and field against bytes that are assembled here, following IBTA 9.2 and 9.3, annex A14 and
 * docs/inside/wire.md; and invalid packets. Frames are in memory of exactly their length, so that a sanitizer detects
 * reads beyond the end.
 */
#include "test_case.h"

#include "process/commands.h"
#include "wire/roce.h"
#include "test_random.h"

enum { MOST = 4096 + 128, UNTOUCHED = 0xa5 };

/*
 * Extension headers by opcode: D DETH, X XRCETH, C DCETH, R RETH, A AtomicETH, E AETH, O AtomicAckETH, I ImmDt, K IETH,
 * P payload, M masks.
 */
static const char *const layouts[256] = {
	[0x00] = "P",
	[0x01] = "P",
	[0x02] = "P",
	[0x03] = "IP",
	[0x04] = "P",
	[0x05] = "IP",
	[0x06] = "RP",
	[0x07] = "P",
	[0x08] = "P",
	[0x09] = "IP",
	[0x0a] = "RP",
	[0x0b] = "RIP",
	[0x0c] = "R",
	[0x0d] = "EP",
	[0x0e] = "P",
	[0x0f] = "EP",
	[0x10] = "EP",
	[0x11] = "E",
	[0x12] = "EO",
	[0x13] = "A",
	[0x14] = "A",
	[0x16] = "KP",
	[0x17] = "KP",
	[0x20] = "P",
	[0x21] = "P",
	[0x22] = "P",
	[0x23] = "IP",
	[0x24] = "P",
	[0x25] = "IP",
	[0x26] = "RP",
	[0x27] = "P",
	[0x28] = "P",
	[0x29] = "IP",
	[0x2a] = "RP",
	[0x2b] = "RIP",
	[0x64] = "DP",
	[0x65] = "DIP",
	[0x81] = "P",
	[0xa0] = "XP",
	[0xa1] = "XP",
	[0xa2] = "XP",
	[0xa3] = "XIP",
	[0xa4] = "XP",
	[0xa5] = "XIP",
	[0xa6] = "XRP",
	[0xa7] = "XP",
	[0xa8] = "XP",
	[0xa9] = "XIP",
	[0xaa] = "XRP",
	[0xab] = "XRIP",
	[0xac] = "XR",
	[0xad] = "EP",
	[0xae] = "P",
	[0xaf] = "EP",
	[0xb0] = "EP",
	[0xb1] = "E",
	[0xb2] = "EO",
	[0xb3] = "XA",
	[0xb4] = "XA",
	[0xb6] = "XKP",
	[0xb7] = "XKP",
	[0xc0] = "CP",
	[0xc1] = "CP",
	[0xc2] = "CP",
	[0xc3] = "CIP",
	[0xc4] = "CP",
	[0xc5] = "CIP",
	[0xc6] = "CRP",
	[0xc7] = "CP",
	[0xc8] = "CP",
	[0xc9] = "CIP",
	[0xca] = "CRP",
	[0xcb] = "CRIP",
	[0xcc] = "CR",
	[0xcd] = "EP",
	[0xce] = "P",
	[0xcf] = "EP",
	[0xd0] = "EP",
	[0xd1] = "E",
	[0xd2] = "EO",
	[0xd3] = "AM",
	[0xd4] = "AM",
	[0xd6] = "CKP",
	[0xd7] = "CKP",
	[0xd8] = "CA",
	[0xd9] = "CA",
	[0xda] = "CAM",
	[0xdb] = "CAM",
	[0xdc] = "C",
	[0xf3] = "XAM",
	[0xf4] = "XAM",
	[0xf6] = "KP",
	[0xf7] = "KP",
	/* ATOMIC WRITE (annex A19). */
	[0x1d] = "RP",
	[0xbd] = "XRP",
	[0xdd] = "CRP",
	/* Not supported: all bytes after BTH are payload. */
	[0x15] = "P",
	[0x18] = "P",
	[0x19] = "P",
	[0x1a] = "P",
	[0x1b] = "P",
	[0x1c] = "P",
	[0x1e] = "P",
	[0x1f] = "P",
	[0xb5] = "P",
	[0xb8] = "P",
	[0xb9] = "P",
	[0xba] = "P",
	[0xbb] = "P",
	[0xbc] = "P",
	[0xbe] = "P",
	[0xbf] = "P",
};

/* ---- a frame, assembled field by field --------------------------------------------------------------------------- */

struct frame {
	uint8_t code;
	bool solicited, acknowledge;
	uint32_t destination, psn, qkey, source, srqn, first_psn, rkey, dma_length, msn, invalidate;
	uint64_t key, connection, address, swap, compare, original, swap_mask, compare_mask;
	uint8_t syndrome, operand_bytes;
	uint32_t immediate;
	uint32_t payload;
	uint8_t data[4096];
	size_t headers, length;
	uint8_t bytes[MOST];
};

static void put(struct frame *frame, uint64_t value, size_t bytes)
{
	while (bytes--)
		frame->bytes[frame->length++] = (uint8_t)(value >> 8 * bytes);
}

static bool has(const struct frame *frame, char header)
{
	return strchr(layouts[frame->code], header) != NULL;
}

static void put_header(struct frame *frame, char header)
{
	switch (header) {
	case 'D':
		put(frame, frame->qkey, 4);
		put(frame, frame->source, 4);
		break;
	case 'X':
		put(frame, frame->srqn, 4);
		break;
	case 'C':
		put(frame, frame->key, 8);
		put(frame, frame->connection, 8);
		put(frame, frame->first_psn, 4);
		put(frame, frame->source, 4);
		break;
	case 'R':
		put(frame, frame->address, 8);
		put(frame, frame->rkey, 4);
		put(frame, frame->dma_length, 4);
		break;
	case 'A':
		put(frame, frame->address, 8);
		put(frame, frame->rkey, 4);
		put(frame, frame->swap, 8);
		put(frame, frame->compare, 8);
		break;
	case 'E':
		put(frame, frame->syndrome, 1);
		put(frame, frame->msn, 3);
		break;
	case 'O':
		put(frame, frame->original, 8);
		break;
	case 'I':
		put(frame, frame->immediate, 4);
		break;
	case 'K':
		put(frame, frame->invalidate, 4);
		break;
	}
}

static void put_body(struct frame *frame)
{
	if (has(frame, 'M')) {
		put(frame, frame->swap_mask, frame->operand_bytes);
		put(frame, frame->compare_mask, frame->operand_bytes);
	}
	if (!has(frame, 'P'))
		return;
	memcpy(frame->bytes + frame->length, frame->data, frame->payload);
	frame->length += frame->payload;
	while (frame->length % 4)
		put(frame, 0, 1);
}

static void assemble(struct frame *frame)
{
	size_t pad = has(frame, 'P') ? (4 - frame->payload % 4) % 4 : 0;

	frame->length = 0;
	put(frame, frame->code, 1);
	/* MigReq is set except in a CNP, which has BECN instead (docs/inside/wire.md); the version is 0. */
	put(frame, (frame->solicited ? 0x80u : 0) | (frame->code == 0x81 ? 0 : 0x40) | pad << 4, 1);
	put(frame, 0xffff, 2);
	put(frame, (frame->code == 0x81 ? 0x40000000 : 0) | frame->destination, 4);
	put(frame, frame->acknowledge, 1);
	frame->bytes[8] <<= 7;
	put(frame, frame->psn, 3);
	for (const char *header = layouts[frame->code]; *header; header++)
		put_header(frame, *header);
	frame->headers = frame->length;
	put_body(frame);
}

/* Makes a frame of @code with random fields. */
static void draw(struct frame *frame, uint8_t code, uint32_t payload)
{
	bool narrow = random64() & 1, adds = code == 0xd4 || code == 0xdb || code == 0xf4;
	uint64_t fields = narrow ? UINT32_MAX : UINT64_MAX;

	memset(frame, 0, sizeof(*frame));
	frame->code = code;
	frame->solicited = random64() & 1 && packet_opcodes[code].place & PLACE_LAST;
	frame->acknowledge = random64() & 1;
	frame->destination = random64() & 0xffffff;
	frame->psn = random64() & 0xffffff;
	frame->qkey = (uint32_t)random64();
	frame->source = random64() & 0xffffff;
	frame->srqn = random64() & 0xffffff;
	frame->first_psn = random64() & 0xffffff;
	frame->rkey = (uint32_t)random64();
	frame->dma_length = (uint32_t)random64();
	frame->msn = random64() & 0xffffff;
	frame->invalidate = (uint32_t)random64();
	frame->key = random64();
	frame->connection = random64();
	frame->address = random64();
	frame->swap = random64();
	/* A plain fetch-and-add has no compare value, one with masks has only a boundary. */
	frame->compare = code == 0x14 || code == 0xb4 || code == 0xd9 ? 0 : random64();
	frame->original = random64();
	frame->operand_bytes = narrow ? 4 : 8;
	frame->swap_mask = random64() & fields;
	frame->compare_mask = adds ? 0 : random64() & fields;
	frame->syndrome =
		packet_opcodes[code].message == MESSAGE_ACKNOWLEDGE ? 0x60 | (random64() & 0x1f) : random64() & 0x1f;
	frame->immediate = (uint32_t)random64();
	frame->payload = has(frame, 'P') ? payload : 0;
	for (uint32_t i = 0; i < frame->payload; i++)
		frame->data[i] = (uint8_t)random64();
	assemble(frame);
}

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

static struct packet packet;
static struct refusal why;

/* Parses @length bytes in memory of exactly that length, which is valid until the next call. */
static int parse(const uint8_t *bytes, size_t length)
{
	static uint8_t *copy;

	free(copy);
	copy = NULL;
	if (!bytes)
		return 0;
	copy = malloc(length ? length : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	memset(&packet, UNTOUCHED, sizeof(packet));
	why.rule = RULE_NONE;
	return roce_parse(&packet, length ? copy : copy + 1, length, &why);
}

static void assert_refused(const uint8_t *bytes, size_t length, enum explain_rule rule)
{
	assert_int_equal(parse(bytes, length), -EPROTO);
	assert_int_equal(why.rule, rule);
}

static void check_fields(const struct frame *frame)
{
	const struct packet_opcode *opcode = &packet_opcodes[frame->code];

	assert_int_equal(packet.transport, opcode->transport);
	assert_int_equal(packet.message, opcode->message);
	assert_int_equal(packet.place, opcode->place);
	assert_int_equal(packet.solicited, frame->solicited);
	assert_int_equal(packet.acknowledge, frame->acknowledge);
	assert_int_equal(packet.destination_qpn, frame->destination);
	assert_int_equal(packet.source_qpn, has(frame, 'D') || has(frame, 'C') ? frame->source : 0);
	assert_int_equal(packet.psn, frame->psn);
	assert_int_equal(packet.count, opcode->message != MESSAGE_READ_REQUEST);
	assert_int_equal(packet.why.rule, RULE_NONE);
	if (has(frame, 'D'))
		assert_int_equal(packet.qkey, frame->qkey);
	if (has(frame, 'X'))
		assert_int_equal(packet.xrc_srqn, frame->srqn);
	if (has(frame, 'C')) {
		assert_int_equal(packet.dc_key, frame->key);
		assert_int_equal(packet.dc_connection, frame->connection);
		assert_int_equal(packet.dc_first_psn, frame->first_psn);
	}
	if (has(frame, 'R') || has(frame, 'A')) {
		assert_int_equal(packet.remote_address, frame->address);
		assert_int_equal(packet.rkey, frame->rkey);
	}
	if (has(frame, 'R'))
		assert_int_equal(packet.dma_length, frame->dma_length);
	if (has(frame, 'A')) {
		uint32_t bytes = has(frame, 'M') ? frame->operand_bytes : 8;

		assert_int_equal(packet.swap_add, frame->swap);
		assert_int_equal(packet.compare, frame->compare);
		assert_int_equal(packet.operand_bytes, bytes);
		assert_int_equal(packet.dma_length, bytes);
	}
	if (has(frame, 'M')) {
		assert_int_equal(packet.swap_mask, frame->swap_mask);
		assert_int_equal(packet.compare_mask, frame->compare_mask);
	}
	if (has(frame, 'E')) {
		assert_int_equal(packet.syndrome, frame->syndrome);
		assert_int_equal(packet.msn, frame->msn);
	}
	if (has(frame, 'O'))
		assert_int_equal(packet.original, frame->original);
	if (has(frame, 'I'))
		assert_int_equal(be32toh(packet.immediate), frame->immediate);
	if (has(frame, 'K'))
		assert_int_equal(packet.invalidate_rkey, frame->invalidate);
}

static void check_payload(const struct frame *frame)
{
	static uint8_t data[4096];

	assert_int_equal(packet.payload.length, frame->payload);
	if (!frame->payload)
		return;
	stream_read(&packet.payload, data, frame->payload);
	assert_memory_equal(data, frame->data, frame->payload);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 63, 64, 255, 256, 1023, 1024, 4095, 4096};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The written bytes equal the assembled ones, and the parsed fields equal the original ones. */
TEST(round_trip)
{
	static struct frame frame;
	uint8_t bytes[ROCE_MOST_HEADERS + 16];
	uint32_t written;

	for (int code = 0; code < 256; code++) {
		assert_int_equal(layouts[code] != NULL, packet_opcodes[code].name != NULL);
		for (size_t i = 0; layouts[code] && i < COUNT(sizes); i++) {
			draw(&frame, (uint8_t)code, sizes[i]);
			assert_in_range(frame.headers, ROCE_BTH_BYTES, ROCE_MOST_HEADERS);
			assert_int_equal(parse(frame.bytes, frame.length), 0);
			check_fields(&frame);
			check_payload(&frame);
			memset(bytes, UNTOUCHED, sizeof(bytes));
			written = roce_headers_write(bytes, &packet, 0, packet.place, frame.payload);
			assert_int_equal(written, frame.headers);
			assert_int_equal(bytes[written], UNTOUCHED);
			if (has(&frame, 'M'))
				written += roce_masks_write(bytes + written, &packet);
			assert_memory_equal(bytes, frame.bytes, written);
			assert_int_equal(written + frame.payload + roce_pad(frame.payload), frame.length);
		}
	}
}

/* The caller's fields do not change, even if the packet is refused. */
TEST(fields_of_the_caller)
{
	static struct frame frame;
	static struct packet before;

	memset(&before, UNTOUCHED, sizeof(before));
	for (int code = 0; code < 256; code++) {
		if (!layouts[code])
			continue;
		draw(&frame, (uint8_t)code, 64);
		for (size_t length = 0; length <= frame.length; length += frame.length - frame.headers + 1) {
			parse(frame.bytes, length);
			assert_int_equal(packet.mtu, before.mtu);
			assert_ptr_equal(packet.link, before.link);
			assert_ptr_equal(packet.path, before.path);
			assert_memory_equal(&packet.own_path, &before.own_path, sizeof(before.own_path));
		}
	}
}

/*
 * Truncated anywhere: within the headers the packet is too short; after them it has a shorter payload, which is valid
 * if the opcode has payload and the length is a multiple of 4.
 */
TEST(truncated)
{
	static struct frame frame;

	for (int code = 0; code < 256; code++) {
		if (!layouts[code])
			continue;
		draw(&frame, (uint8_t)code, 64);
		for (size_t length = 0; length < frame.headers; length++)
			assert_refused(frame.bytes, length, RULE_FRAME_SHORT);
		assert_int_equal(why.args[0], frame.headers - 1);
		assert_int_equal(why.args[1], frame.headers);
		for (size_t length = frame.headers; length < frame.length; length++) {
			size_t rest = length - frame.headers;

			if (rest % 4)
				assert_refused(frame.bytes, length, RULE_FRAME_PAD);
			else if (has(&frame, 'P'))
				assert_int_equal(parse(frame.bytes, length), 0);
			else if (rest != 8)
				assert_refused(frame.bytes, length, RULE_FRAME_MASKS);
		}
	}
}

/* A pad count is the number of padding bytes; the packet must contain at least that many. */
TEST(wrong_pad)
{
	static struct frame frame;

	for (int code = 0; code < 256; code++) {
		if (!layouts[code])
			continue;
		for (unsigned int pad = 1; pad < 4; pad++) {
			draw(&frame, (uint8_t)code, 8);
			frame.bytes[1] = (uint8_t)((frame.bytes[1] & ~0x30) | pad << 4);
			if (has(&frame, 'P')) {
				assert_int_equal(parse(frame.bytes, frame.length), 0);
				assert_int_equal(packet.payload.length, 8 - pad);
				assert_refused(frame.bytes, frame.headers, RULE_FRAME_PAD);
				assert_int_equal(why.args[2], 0);
				assert_int_equal(why.args[3], pad);
			} else if (has(&frame, 'M')) {
				assert_refused(frame.bytes, frame.length, RULE_FRAME_MASKS);
			} else {
				assert_refused(frame.bytes, frame.length, RULE_FRAME_PAD);
			}
		}
	}
}

TEST(without_payload)
{
	static struct frame frame;

	for (int code = 0; code < 256; code++) {
		if (!layouts[code])
			continue;
		draw(&frame, (uint8_t)code, 0);
		for (size_t more = 4; more <= 4096 && !has(&frame, 'P') && !has(&frame, 'M'); more *= 2) {
			assert_refused(frame.bytes, frame.length + more, RULE_FRAME_LENGTH);
			assert_int_equal(why.args[2], more);
		}
	}
}

TEST(masks)
{
	static const uint8_t codes[] = {0xd3, 0xd4, 0xda, 0xdb, 0xf3, 0xf4};
	static struct frame frame;

	for (size_t i = 0; i < COUNT(codes); i++) {
		draw(&frame, codes[i], 0);
		for (size_t bytes = 0; bytes <= 64; bytes += 4) {
			if (bytes == 8 || bytes == 16) {
				assert_int_equal(parse(frame.bytes, frame.headers + bytes), 0);
				assert_int_equal(packet.operand_bytes, bytes / 2);
				assert_int_equal(packet.payload.length, 0);
			} else {
				assert_refused(frame.bytes, frame.headers + bytes, RULE_FRAME_MASKS);
				assert_int_equal(why.args[2], bytes);
			}
		}
	}
}

TEST(version)
{
	static struct frame frame;

	for (unsigned int value = 1; value < 16; value++) {
		draw(&frame, 0x04, 64);
		frame.bytes[1] |= (uint8_t)value;
		assert_refused(frame.bytes, frame.length, RULE_FRAME_VERSION);
		assert_int_equal(why.args[0], frame.destination);
		assert_int_equal(why.args[1], value);
	}
}

/* IBTA 10.9.1.1: the same partition, and at least one of both is a full member; the port is. */
TEST(p_key)
{
	static struct frame frame;

	draw(&frame, 0x04, 64);
	for (unsigned int value = 0; value < 0x10000; value++) {
		frame.bytes[2] = (uint8_t)(value >> 8);
		frame.bytes[3] = (uint8_t)value;
		if (value == 0xffff || value == 0x7fff)
			assert_int_equal(parse(frame.bytes, frame.length), 0);
		else
			assert_refused(frame.bytes, frame.length, RULE_FRAME_P_KEY);
	}
	assert_int_equal(why.args[1], 0xfffe);
}

TEST(unknown_opcode)
{
	static struct frame frame;

	for (int code = 0; code < 256; code++) {
		if (layouts[code])
			continue;
		draw(&frame, 0x04, 64);
		frame.bytes[0] = (uint8_t)code;
		assert_refused(frame.bytes, frame.length, RULE_FRAME_OPCODE);
		assert_int_equal(why.args[1], code);
	}
}

/* IBTA 9.7.5.1.2: ACK, RNR NAK, NAK; 0x40 and the top bit are reserved. */
TEST(syndromes)
{
	static const uint8_t codes[] = {0x0d, 0x0f, 0x10, 0x11, 0x12, 0xad, 0xaf, 0xb0,
					0xb1, 0xb2, 0xcd, 0xcf, 0xd0, 0xd1, 0xd2};
	static struct frame frame;

	for (size_t i = 0; i < COUNT(codes); i++) {
		bool acknowledgement = (codes[i] & 0x1f) == 0x11;

		for (unsigned int value = 0; value < 256; value++) {
			unsigned int kind = value >> 5;

			draw(&frame, codes[i], 16);
			frame.bytes[12] = (uint8_t)value;
			if (kind == 0 || (acknowledgement && (kind == 1 || kind == 3)))
				assert_int_equal(parse(frame.bytes, frame.length), 0);
			else
				assert_refused(frame.bytes, frame.length, RULE_FRAME_SYNDROME);
		}
	}
}

/* IBTA 9.2: reserved fields are ignored. */
TEST(reserved)
{
	static struct frame frame;
	static const struct {
		uint8_t code, byte, bits;
	} fields[] = {
		{0x04, 1, 0x40},  /* MigReq */
		{0x04, 4, 0xff},  /* FECN, BECN, six reserved bits */
		{0x04, 8, 0x7f},  /* after the acknowledge request */
		{0x64, 16, 0xff}, /* DETH */
		{0xa4, 12, 0xff}, /* XRCETH */
		{0xc4, 28, 0xff}, /* DCETH: before the first PSN… */
		{0xc4, 32, 0xff}, /* …and before the source */
	};

	for (size_t i = 0; i < COUNT(fields); i++) {
		draw(&frame, fields[i].code, 64);
		frame.bytes[fields[i].byte] ^= fields[i].bits;
		assert_int_equal(parse(frame.bytes, frame.length), 0);
		check_fields(&frame);
		check_payload(&frame);
	}
}

/*
 * A run: sequence numbers increase; only the last packet requests an acknowledgement, has the solicited event bit, and
 * carries the immediate.
 */
TEST(runs)
{
	static const struct {
		uint8_t message, first, middle, last;
	} kinds[] = {
		{MESSAGE_SEND, 0x00, 0x01, 0x02},
		{MESSAGE_SEND_IMM, 0x00, 0x01, 0x03},
		{MESSAGE_SEND_INVALIDATE, 0x00, 0x01, 0x16},
		{MESSAGE_WRITE, 0x06, 0x07, 0x08},
		{MESSAGE_WRITE_IMM, 0x06, 0x07, 0x09},
		{MESSAGE_READ_RESPONSE, 0x0d, 0x0e, 0x0f},
	};
	uint8_t bytes[ROCE_MOST_HEADERS];

	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct packet run = {
			.transport = IBV_QPT_RC,
			.message = kinds[i].message,
			.solicited = true,
			.acknowledge = true,
			.psn = 0xffffff,
			.count = 3,
			.mtu = 256,
		};

		for (uint32_t number = 0; number < 3; number++) {
			unsigned int place = number == 0 ? PLACE_FIRST : number == 2 ? PLACE_LAST : PLACE_MIDDLE;
			uint8_t code = number == 0 ? kinds[i].first : number == 2 ? kinds[i].last : kinds[i].middle;
			uint32_t psn;

			assert_true(roce_headers_write(bytes, &run, number, place, 256));
			psn = (uint32_t)bytes[9] << 16 | (uint32_t)bytes[10] << 8 | bytes[11];
			assert_int_equal(bytes[0], code);
			assert_int_equal(bytes[1], number == 2 ? 0xc0 : 0x40);
			assert_int_equal(bytes[8], number == 2 ? 0x80 : 0);
			assert_int_equal(psn, number == 0 ? 0xffffff : number - 1);
		}
	}
}

/* A READ request is one packet, regardless of the number of packets of its response. */
TEST(read_request)
{
	struct packet read = {
		.transport = IBV_QPT_RC, .message = MESSAGE_READ_REQUEST, .acknowledge = true, .count = 7, .psn = 5};
	uint8_t bytes[ROCE_MOST_HEADERS];

	assert_int_equal(roce_headers_write(bytes, &read, 0, PLACE_ONLY, 0), 28);
	assert_int_equal(bytes[0], 0x0c);
	assert_int_equal(bytes[8], 0x80);
	assert_int_equal(bytes[11], 5);
}

/* Messages that a transport does not have are not sent. */
TEST(no_opcode)
{
	static const uint8_t transports[] = {IBV_QPT_RC,
					     IBV_QPT_UC,
					     IBV_QPT_UD,
					     IBV_QPT_XRC_SEND,
					     IBV_QPT_XRC_RECV,
					     QP_TYPE_DCI,
					     QP_TYPE_DCT,
					     IBV_QPT_RAW_PACKET,
					     0,
					     255};
	uint8_t bytes[ROCE_MOST_HEADERS];

	for (size_t i = 0; i < COUNT(transports); i++)
		/* MESSAGE_UNSUPPORTED has the opcode that the packet names. */
		for (unsigned int message = 0; message < MESSAGE_UNSUPPORTED; message++)
			for (unsigned int place = 0; place <= PLACE_ONLY; place++) {
				struct packet sent = {
					.transport = transports[i], .message = (uint8_t)message, .count = 1};
				unsigned int carrier = message;
				int code;

				if (!(place & PLACE_LAST))
					carrier = message == MESSAGE_WRITE_IMM ? MESSAGE_WRITE
						  : message == MESSAGE_SEND_IMM || message == MESSAGE_SEND_INVALIDATE
							  ? MESSAGE_SEND
							  : message;
				code = packet_opcode_of(transports[i], carrier, place);
				bytes[0] = UNTOUCHED;
				if (code < 0) {
					assert_int_equal(roce_headers_write(bytes, &sent, 0, place, 0), 0);
				} else {
					assert_true(roce_headers_write(bytes, &sent, 0, place, 0));
					assert_int_equal(bytes[0], code);
				}
			}
}

/* A CNP as sent by an adapter, published as an example (docs/inside/interop.md), without its ICRC. */
TEST(published_cnp)
{
	static const uint8_t published[28] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0xd2};
	struct packet sent = {
		.transport = TRANSPORT_NONE, .message = MESSAGE_CONGESTION, .destination_qpn = 0xd2, .count = 1};
	uint8_t bytes[ROCE_MOST_HEADERS];

	assert_int_equal(roce_headers_write(bytes, &sent, 0, PLACE_ONLY, 16), 12);
	assert_memory_equal(bytes, published, 12);
	assert_int_equal(parse(published, sizeof(published)), 0);
	assert_int_equal(packet.message, MESSAGE_CONGESTION);
	assert_int_equal(packet.destination_qpn, 0xd2);
	assert_int_equal(packet.payload.length, 16);
}

/* The half that handles no payload. */
TEST(headers_alone)
{
	static struct frame frame;

	for (int code = 0; code < 256; code++) {
		if (!layouts[code])
			continue;
		draw(&frame, (uint8_t)code, 1000);
		assert_int_equal(roce_headers_parse(&packet, frame.bytes, frame.headers, &why), frame.headers);
		assert_int_equal(packet.payload.length, 0);
		assert_int_equal(packet.psn, frame.psn);
		assert_int_equal(roce_destination(frame.bytes), frame.destination);
	}
}

/* rdma_flow_label_to_udp_sport() and rdma_calc_flow_label() of Linux, computed by hand. */
TEST(source_port)
{
	struct packet_path path = {0};

	path.udp_source_port = 1234;
	path.flow_label = 5;
	assert_int_equal(roce_source_port(&path, 1, 2), 1234);
	path.udp_source_port = 0;
	assert_int_equal(roce_source_port(&path, 1, 2), 0xc005);
	path.flow_label = 0xfffff; /* 0x3fff ^ 0x3f */
	assert_int_equal(roce_source_port(&path, 1, 2), 0xffc0);
	path.flow_label = 0x4000; /* 0 ^ 1 */
	assert_int_equal(roce_source_port(&path, 1, 2), 0xc001);
	path.flow_label = 0;
	assert_int_equal(roce_source_port(&path, 0x11, 0x12), 0xc132);
	/* The product is 0xc379a59ba4a; folded into the lowest 20 bits 0xac3e3; 0x03e3 ^ 0x2b. */
	assert_int_equal(roce_source_port(&path, 0xabcdef, 0x123456), 0xc3c8);
	assert_int_equal(roce_source_port(&path, 7, 9), roce_source_port(&path, 9, 7));
}

int main(void)
{
	int failed = run_cases();

	parse(NULL, 0);
	return failed;
}
