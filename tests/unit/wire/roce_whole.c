/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of whole messages (wire/roce_whole.h) against those of any packet (wire/roce.h, which unit/roce.c compares
 * with the sources): the written bytes are the same, and accepted bytes are parsed to the same fields.
 */
#include "test_case.h"

#include "wire/roce_whole.h"
#include "test_random.h"

enum { UNTOUCHED = 0xa5, ROUNDS = 200 };

static const uint8_t opcodes[] = {ROCE_WHOLE_SEND, ROCE_WHOLE_WRITE, ROCE_WHOLE_READ_REQUEST, ROCE_WHOLE_READ_RESPONSE,
				  ROCE_WHOLE_ACKNOWLEDGE};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Calls the compiled variant for a variable opcode. */
#define BY_OPCODE(opcode, call)                                                                                        \
	((opcode) == ROCE_WHOLE_SEND            ? call(ROCE_WHOLE_SEND)                                                \
	 : (opcode) == ROCE_WHOLE_WRITE         ? call(ROCE_WHOLE_WRITE)                                               \
	 : (opcode) == ROCE_WHOLE_READ_REQUEST  ? call(ROCE_WHOLE_READ_REQUEST)                                        \
	 : (opcode) == ROCE_WHOLE_READ_RESPONSE ? call(ROCE_WHOLE_READ_RESPONSE)                                       \
						: call(ROCE_WHOLE_ACKNOWLEDGE))

static struct packet packet, parsed, whole;

static void draw(uint8_t opcode)
{
	memset(&packet, UNTOUCHED, sizeof(packet));
	packet.transport = IBV_QPT_RC;
	packet.message = packet_opcodes[opcode].message;
	packet.place = PLACE_ONLY;
	packet.solicited = random64() & 1;
	packet.acknowledge = random64() & 1;
	packet.destination_qpn = random64() & 0xffffff;
	packet.psn = random64() & 0xffffff;
	packet.count = 1 + random64() % 3;
	packet.remote_address = random64();
	packet.rkey = (uint32_t)random64();
	packet.dma_length = (uint32_t)random64();
	packet.syndrome = random64() & 0x1f;
	packet.msn = random64() & 0xffffff;
}

static uint32_t draw_payload(uint8_t opcode)
{
	return packet_opcodes[opcode].headers & HEADER_PAYLOAD ? (uint32_t)(random64() % 300) : 0;
}

TEST(test_sizes)
{
	for (size_t i = 0; i < COUNT(opcodes); i++) {
		const struct packet_opcode *opcode = &packet_opcodes[opcodes[i]];

		assert_int_equal(opcode->transport, IBV_QPT_RC);
		assert_int_equal(opcode->place, PLACE_ONLY);
		assert_int_equal(BY_OPCODE(opcodes[i], roce_whole_message), opcode->message);
		assert_int_equal(BY_OPCODE(opcodes[i], roce_whole_bytes), ROCE_BTH_BYTES + opcode->header_bytes);
		assert_int_equal(BY_OPCODE(opcodes[i], roce_whole_has_payload),
				 (opcode->headers & HEADER_PAYLOAD) != 0);
	}
}

TEST(test_writing)
{
	uint8_t bytes[ROCE_MOST_HEADERS], expected[ROCE_MOST_HEADERS];

	for (size_t i = 0; i < COUNT(opcodes) * ROUNDS; i++) {
		uint8_t opcode = opcodes[i % COUNT(opcodes)];
		uint32_t payload = draw_payload(opcode), written;

		draw(opcode);
		memset(bytes, UNTOUCHED, sizeof(bytes));
		memset(expected, UNTOUCHED, sizeof(expected));
		written = roce_headers_write(expected, &packet, 0, PLACE_ONLY, payload);
#define WRITE(constant) (roce_whole_write(bytes, &packet, constant, payload), roce_whole_bytes(constant))
		assert_int_equal(BY_OPCODE(opcode, WRITE), written);
#undef WRITE
		assert_memory_equal(bytes, expected, sizeof(bytes));
	}
}

static void assert_same(void)
{
	assert_int_equal(whole.transport, parsed.transport);
	assert_int_equal(whole.message, parsed.message);
	assert_int_equal(whole.place, parsed.place);
	assert_int_equal(whole.solicited, parsed.solicited);
	assert_int_equal(whole.acknowledge, parsed.acknowledge);
	assert_int_equal(whole.destination_qpn, parsed.destination_qpn);
	assert_int_equal(whole.source_qpn, parsed.source_qpn);
	assert_int_equal(whole.psn, parsed.psn);
	assert_int_equal(whole.count, parsed.count);
	assert_int_equal(whole.remote_address, parsed.remote_address);
	assert_int_equal(whole.rkey, parsed.rkey);
	assert_int_equal(whole.dma_length, parsed.dma_length);
	assert_int_equal(whole.syndrome, parsed.syndrome);
	assert_int_equal(whole.msn, parsed.msn);
	assert_int_equal(whole.why.rule, parsed.why.rule);
	assert_int_equal(whole.payload.length, parsed.payload.length);
}

/*
 * Returns the result of roce_whole_parse() for @bytes. If it accepts them, the general function must accept them with
 * the same fields.
 */
static bool accepted(const uint8_t *bytes, uint8_t opcode, uint32_t payload)
{
	struct refusal why;
	bool good;

	memset(&whole, UNTOUCHED, sizeof(whole));
	memset(&parsed, UNTOUCHED, sizeof(parsed));
#define PARSE(constant) roce_whole_parse(&whole, bytes, constant, payload)
	good = BY_OPCODE(opcode, PARSE);
#undef PARSE
	if (!good)
		return false;
	assert_int_equal(roce_headers_parse(&parsed, bytes, ROCE_MOST_HEADERS, &why),
			 ROCE_BTH_BYTES + packet_opcodes[opcode].header_bytes);
	assert_int_equal(roce_pad_of(bytes), roce_pad(payload));
	assert_same();
	return true;
}

/* Returns true for bits of the first word with fixed values: all but the solicited event and MigReq (IBTA 9.2). */
static bool is_fixed(size_t bit)
{
	return bit < 32 && bit != 8 && bit != 9;
}

/* Bits are numbered from the highest of byte 0. */
TEST(test_parsing)
{
	uint8_t bytes[ROCE_MOST_HEADERS] = {0};

	for (size_t i = 0; i < COUNT(opcodes) * ROUNDS; i++) {
		uint8_t opcode = opcodes[i % COUNT(opcodes)];
		uint32_t payload = draw_payload(opcode);
		size_t bits = 8 * roce_headers_write(bytes, (draw(opcode), &packet), 0, PLACE_ONLY, payload);
		bool has_syndrome = packet_opcodes[opcode].headers & HEADER_AETH;

		assert_true(accepted(bytes, opcode, payload));
		for (size_t bit = 0; bit < bits; bit++) {
			/* A NAK, or a reserved acknowledgement, is left to the general function. */
			bool refuses = has_syndrome && bit >= 96 && bit < 99;

			bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			assert_int_equal(accepted(bytes, opcode, payload), !is_fixed(bit) && !refuses);
			bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
}
