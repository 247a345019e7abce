/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as text and back (tool/decoder.h, tool/encoder.h): for any bytes the text is complete; for any text the encoder
 * reports an error or generates bytes. Inputs are in memory of exactly their length, so that a sanitizer detects reads
 * beyond the end.
 */
#include "test_case.h"

#include "format/opcode.h"
#include "format/wqe.h"
#include "tool/decoder.h"
#include "tool/encoder.h"
#include "tool/input.h"
#include "test_random.h"

enum { ROUNDS = 2000, MOST = 600 };

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)((random64() >> 32) % limit);
}

static void randomize(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = random_below(4) ? (uint8_t)random_below(256) : 0;
}

enum kind { WQES, CQES, BIG_CQES, MKEY, BSF, PACKET, KINDS };

/* Decodes @bytes into a text that the caller frees; @fault: whether it reports an error. */
static char *decode(enum kind kind, enum decode_transport transport, const uint8_t *bytes, size_t length, bool *fault)
{
	uint8_t *exact = malloc(length ? length : 1);
	struct decoder decoder;
	char *text = NULL;
	size_t text_length;
	FILE *out = open_memstream(&text, &text_length);

	assert_true(exact && out);
	memcpy(exact, bytes, length);
	decoder_begin(&decoder, exact, length, out);
	if (kind == WQES)
		decode_wqes(&decoder, transport);
	else if (kind == CQES || kind == BIG_CQES)
		decode_cqes(&decoder, kind == CQES ? 64 : 128);
	else if (kind == MKEY)
		decode_mkey(&decoder);
	else if (kind == BSF)
		decode_bsf(&decoder);
	else
		decode_packet(&decoder, (enum packet_begin)transport); /* both enumerations have five values */
	decoder_rest(&decoder, decoder.length);
	assert_int_equal(decoder.end, length);
	assert_int_equal(fclose(out), 0);
	free(exact);
	*fault = *decoder.fault;
	return text;
}

static int encode(const char *text, size_t length, uint8_t *bytes, char error[256])
{
	char *exact = malloc(length ? length : 1);
	int made;

	assert_non_null(exact);
	memcpy(exact, text, length);
	*error = '\0';
	made = encode_text(exact, length, bytes, error, 256);
	free(exact);
	return made;
}

static uint8_t *room(void)
{
	uint8_t *bytes = malloc(ENCODER_MOST_BYTES);

	assert_non_null(bytes);
	return bytes;
}

/* Generates input that often resembles @kind. */
static size_t draw(enum kind kind, uint8_t *bytes)
{
	static const uint8_t opcodes[] = {0x00, 0x01, 0x08, 0x0a, 0x0e, 0x10, 0x11, 0x14, 0x15, 0x20, 0x25, 0x28, 0x2f};
	size_t length = random_below(MOST);

	randomize(bytes, MOST);
	if (kind == WQES) {
		bytes[3] = opcodes[random_below(sizeof(opcodes))];
		bytes[7] = (uint8_t)random_below(64);
		bytes[0] = random_below(2) ? 0 : (uint8_t)(8 + random_below(2));
		/* UMR: the inline flag, repeated entries, sizes that sometimes fit. */
		bytes[20] = bytes[22] = 0;
		bytes[21] = (uint8_t)random_below(12);
		bytes[23] = (uint8_t)random_below(9);
		if (random_below(2))
			length = (size_t)(bytes[7] = (uint8_t)(length / 16)) * 16;
		if (random_below(2))
			memcpy(bytes + 16 + 48 + 64 + 4, "\0\0\4\0\0\0\0\2\0\0\0\3", 12);
	} else if ((kind == CQES || kind == BIG_CQES) && random_below(2)) {
		length = length / 128 * 128;
	} else if (kind == PACKET && random_below(2)) {
		bytes[2] = bytes[3] = 0xff;
	} else if (kind == PACKET) {
		bool six = random_below(2);
		size_t udp = 14 + (six ? 40 : 20);

		memcpy(bytes + 12, six ? "\x86\xdd\x60" : "\x08\x00\x45", 3);
		bytes[14 + (six ? 6 : 9)] = 17;
		bytes[udp + 4] = (uint8_t)((length - udp) >> 8);
		bytes[udp + 5] = (uint8_t)(length - udp - random_below(3));
		if (length < udp)
			length = udp + 40;
	}
	return length;
}

TEST(test_round_trip)
{
	uint8_t bytes[MOST], *back = room();
	uint32_t whole[KINDS] = {0};

	for (uint32_t round = 0; round < ROUNDS * KINDS; round++) {
		enum kind kind = round % KINDS;
		size_t length = draw(kind, bytes);
		char error[256];
		bool fault;
		char *text = decode(kind, (enum decode_transport)random_below(5), bytes, length, &fault);
		int made = encode(text, strlen(text), back, error);

		if (made != (int)length || memcmp(back, bytes, length))
			fail_msg("round %u: %zu bytes, made %d: %s\n%s", round, length, made, error, text);
		whole[kind] += !fault;
		free(text);
	}
	/* Enough inputs of each kind decode without a fault. */
	for (int kind = 0; kind < KINDS; kind++)
		assert_true(whole[kind] > 100);
	free(back);
}

/* Damaged text: the encoder returns, and the text it accepted decodes to the same bytes. */
TEST(test_hostile_text)
{
	uint8_t bytes[MOST], *back = room(), *again = room();
	uint32_t refused = 0, taken = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		enum kind kind = round % KINDS;
		size_t length = draw(kind, bytes), text_length;
		char error[256];
		bool fault;
		char *text = decode(kind, DECODE_RC, bytes, length, &fault);
		int made;

		text_length = strlen(text);
		for (uint32_t change = random_below(4); text_length && change < 4; change++) {
			if (!random_below(3))
				text_length = random_below((uint32_t)text_length);
			else
				text[random_below((uint32_t)text_length)] = "\n =#x|\xff\0f9z"[random_below(11)];
		}
		made = encode(text, text_length, back, error);
		free(text);
		assert_true((made < 0) == (*error != '\0'));
		if (made < 0) {
			refused++;
			continue;
		}
		taken++;
		text = decode(kind, DECODE_RC, back, (size_t)made, &fault);
		assert_int_equal(encode(text, strlen(text), again, error), made);
		assert_memory_equal(again, back, (size_t)made);
		free(text);
	}
	assert_true(refused > 100 && taken > 100);
	free(back);
	free(again);
}

static void refused(const char *text, const char *why)
{
	uint8_t *bytes = room();
	char error[256];

	assert_int_equal(encode(text, strlen(text), bytes, error), -1);
	if (!strstr(error, why))
		fail_msg("%s: %s", text, error);
	free(bytes);
}

TEST(test_wrong_text)
{
	refused("nothing_like_it\n", "line 1: \"nothing_like_it\" is not a part");
	refused("\n# x\nopmod = 1\n", "line 3: \"opmod\" is not in a part");
	refused("data\n  rkey = 1\n", "line 2: data has no field \"rkey\"");
	refused("data\n  lkey = 0x100000000\n", "line 2: lkey: 0x100000000 has more than 32 bits");
	refused("data\n  lkey = 99999999999999999999\n", "is neither a number nor the name of one");
	refused("data\n  lkey =\n", "is neither a number nor the name of one");
	refused("data\n  lkey = -1\n", "is neither a number nor the name of one");
	refused("data\n  lkey = 1 2\n", "is neither a number nor the name of one");
	refused("data\n  lkey = 1\n  lkey = 1\n", "line 3: lkey is given twice");
	refused("ctrl\n  opcode = WRITE_RDMA\n", "opcode: \"WRITE_RDMA\" is neither a number nor the name of one");
	refused("payload\n  data = 123\n", "line 2: 3 hexadecimal digits where 2 belong");
	refused("payload\n  data = 12zz\n", "is not hexadecimal");
	refused("ipv4\n  source = 7f0000\n", "6 hexadecimal digits where 8 belong");
	refused("data\n  reserved = 00\n", "2 hexadecimal digits where 32 belong");
	refused("\x1b[2J\n", "\"?[2J\" is not a part");
}

static void made_of(const char *text, const char *hex)
{
	uint8_t *bytes = room();
	char error[256], got[1024] = "";
	int made = encode(text, strlen(text), bytes, error);

	assert_string_equal(error, "");
	for (int i = 0; i < made; i++)
		sprintf(got + 2 * i, "%02x", bytes[i]);
	assert_string_equal(got, hex);
	free(bytes);
}

/* mlx5-formats 1.2, 1.5 and 1.8, by hand. */
TEST(test_written_by_hand)
{
	made_of("", "");
	made_of("ctrl\nopcode=RDMA_WRITE\n qpn = 0x40 # of mine\nraddr\ninline\n data = 0102\n data = 03",
		"00000008000040030000000000000000"
		"00000000000000000000000000000000"
		"80000003010203");
	made_of("ctrl\n ds = 9\nctrl\nraddr\nctrl\n", "00000000000000090000000000000000"
						      "00000000000000020000000000000000"
						      "00000000000000000000000000000000"
						      "00000000000000010000000000000000");
	made_of("umr\n mkey_mask = LEN|0x40|FREE\n",
		"0000000000000000"
		"0000000020000041"
		"0000000000000000000000000000000000000000000000000000000000000000");
	made_of("aeth\n syndrome = NAK_remote_access\n msn = 5", "62000005");
}
