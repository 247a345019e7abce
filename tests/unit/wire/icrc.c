/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC against a model that divides bit by bit as IBTA 7.8.1 describes, and against packets of other
 * implementations: one of a ConnectX-4 Lx and one of a Linux host, as published with scapy's RoCE layer.
 */
#include "test_case.h"

#include "wire/icrc_powers.h"
#include "wire/roce.h"
#include "test_random.h"

enum { MOST = 4200, ONES = 8 };

/* ---- the model ------------------------------------------------------------------------------------------------ */

/*
 * Returns the remainder, with the most significant coefficient in bit 31. The least significant bit of each byte comes
 * first.
 */
static uint32_t divide(uint32_t remainder, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length * 8; i++) {
		uint32_t out = remainder >> 31 ^ (bytes[i / 8] >> i % 8 & 1);

		remainder = remainder << 1 ^ (out ? 0x04c11db7 : 0);
	}
	return remainder;
}

static uint32_t reversed(uint32_t value)
{
	uint32_t result = 0;

	for (int i = 0; i < 32; i++)
		result |= (value >> i & 1) << (31 - i);
	return result;
}

/* Computes the four bytes on the wire. @frame: from the IP header on, @length bytes without ICRC. */
static void model(const uint8_t *frame, size_t length, uint8_t icrc[4])
{
	uint8_t bytes[ONES + MOST];
	uint8_t *ip = bytes + ONES, *udp;
	uint32_t crc;

	memset(bytes, 0xff, ONES);
	memcpy(ip, frame, length);
	if (ip[0] >> 4 == 4) {
		udp = ip + 20;
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		udp = ip + 40;
		ip[0] = 0x6f;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
	udp[6] = udp[7] = 0xff;
	udp[8 + 4] = 0xff;
	crc = ~reversed(divide(0xffffffff, bytes, ONES + length));
	for (int i = 0; i < 4; i++)
		icrc[i] = (uint8_t)(crc >> 8 * i);
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

struct frame {
	struct packet_path path;
	uint16_t source_port, destination_port, identification;
	size_t headers, length; /* length: BTH … pad */
	uint8_t bytes[MOST];
};

static void put16(uint8_t *to, size_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static void fill(void *to, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)to)[i] = (uint8_t)random64();
}

static void put_ipv4(struct frame *frame)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t *ip = frame->bytes;

	memcpy(frame->path.source.raw, mapped, sizeof(mapped));
	memcpy(frame->path.destination.raw, mapped, sizeof(mapped));
	ip[0] = 0x45;
	put16(ip + 2, 20 + 8 + frame->length + 4);
	put16(ip + 4, frame->identification);
	ip[6] = 0x40;
	ip[9] = 17;
	memcpy(ip + 12, frame->path.source.raw + 12, 4);
	memcpy(ip + 16, frame->path.destination.raw + 12, 4);
	frame->headers = 28;
}

static void put_ipv6(struct frame *frame)
{
	uint8_t *ip = frame->bytes;

	ip[0] = 0x60;
	put16(ip + 4, 8 + frame->length + 4);
	ip[6] = 17;
	memcpy(ip + 8, &frame->path.source, 16);
	memcpy(ip + 24, &frame->path.destination, 16);
	frame->headers = 48;
}

/* Makes a frame. Fields that routers may change have other values in the path than in the frame. */
static void make(struct frame *frame, bool ipv4, size_t length)
{
	uint8_t *udp;

	memset(frame, 0, sizeof(*frame));
	fill(&frame->path, sizeof(frame->path));
	frame->path.type = IBV_GID_TYPE_ROCE_V2;
	frame->source_port = (uint16_t)random64();
	frame->destination_port = (uint16_t)random64();
	frame->identification = ipv4 ? (uint16_t)random64() : 0;
	frame->length = length;
	if (ipv4)
		put_ipv4(frame);
	else
		put_ipv6(frame);
	udp = frame->bytes + frame->headers - 8;
	put16(udp, frame->source_port);
	put16(udp + 2, frame->destination_port);
	put16(udp + 4, 8 + length + 4);
	fill(frame->bytes + frame->headers, length);
	model(frame->bytes, frame->headers + length, frame->bytes + frame->headers + length);
}

static uint32_t icrc_of(const struct frame *frame)
{
	return roce_icrc(&frame->path, frame->source_port, frame->destination_port, frame->identification,
			 frame->bytes + frame->headers, frame->length);
}

/* Solves for the header, expecting @identification; returns false if no header matches. */
static bool fits(const struct frame *frame, uint16_t identification, struct ipv4_unseen *unseen)
{
	*unseen = (struct ipv4_unseen){.identification = identification};
	return roce_icrc_fits(&frame->path, frame->source_port, frame->destination_port, unseen,
			      frame->bytes + frame->headers, frame->length);
}

static void expect_unseen(const struct frame *frame, uint16_t expected, uint16_t identification, bool may_fragment)
{
	struct ipv4_unseen unseen;

	assert_true(fits(frame, expected, &unseen));
	assert_int_equal(unseen.identification, identification);
	assert_int_equal(unseen.may_fragment, may_fragment);
	assert_int_equal(unseen.solved, may_fragment || identification != expected);
}

/* Changes bytes in the IPv4 header of the frame. */
static void change_ipv4(struct frame *frame, uint16_t identification, uint16_t flags)
{
	put16(frame->bytes + 4, identification);
	put16(frame->bytes + 6, flags);
	model(frame->bytes, frame->headers + frame->length, frame->bytes + frame->headers + frame->length);
}

/* ---- tests ---------------------------------------------------------------------------------------------------- */

/* Packets of other implementations. */
TEST(published)
{
	static const uint8_t connectx[] = {
		0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11,
		0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
		0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
	};
	static const uint8_t linux_host[] = {
		0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 0xc0, 0xa8, 0x00, 0x07,
		0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60, 0xff, 0xff,
		0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 'F',  '0',  0x81, 0x8b, 0xe2, 0x89, '5',  0xd9,
		0x0e, 0x9a, 0x95, 'P',  'T',  0x01, 0xbe, 0x88, '^',  'P',  0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3,
	};
	static const struct {
		const uint8_t *bytes;
		size_t length;
	} packets[] = {{connectx, sizeof(connectx)}, {linux_host, sizeof(linux_host)}};

	for (size_t i = 0; i < 2; i++) {
		const uint8_t *bytes = packets[i].bytes;
		size_t length = packets[i].length - 28 - 4;
		uint16_t source_port = (uint16_t)(bytes[20] << 8 | bytes[21]), identification;
		struct packet_path path = {.source.raw = {[10] = 0xff, [11] = 0xff},
					   .destination.raw = {[10] = 0xff, [11] = 0xff}};
		uint8_t by_model[4];
		uint32_t icrc;

		memcpy(path.source.raw + 12, bytes + 12, 4);
		memcpy(path.destination.raw + 12, bytes + 16, 4);
		identification = (uint16_t)(bytes[4] << 8 | bytes[5]);
		icrc = roce_icrc(&path, source_port, 4791, identification, bytes + 28, length);
		assert_memory_equal(&icrc, bytes + 28 + length, 4);
		for (uint32_t expected = 0; expected <= identification; expected += identification) {
			struct ipv4_unseen unseen = {.identification = (uint16_t)expected};

			assert_true(roce_icrc_fits(&path, source_port, 4791, &unseen, bytes + 28, length));
			assert_int_equal(unseen.identification, identification);
			assert_false(unseen.may_fragment);
			assert_int_equal(unseen.solved, expected != identification);
		}
		model(bytes, 28 + length, by_model);
		assert_memory_equal(by_model, bytes + 28 + length, 4);
	}
}

TEST(each_length)
{
	static struct frame frame;

	for (size_t length = ROCE_BTH_BYTES; length + 52 <= MOST; length += length < 400 ? 1 : 1 + random64() % 97) {
		for (int ipv4 = 0; ipv4 < 2; ipv4++) {
			uint32_t icrc;

			make(&frame, ipv4, length);
			icrc = icrc_of(&frame);
			assert_memory_equal(&icrc, frame.bytes + frame.headers + length, 4);
		}
	}
}

/* An identification is found for any length and any expectation. */
TEST(each_length_solved)
{
	static struct frame frame;

	for (size_t length = ROCE_BTH_BYTES; length + 52 <= MOST;
	     length += length < 400 ? 4 : 4 * (1 + random64() % 9)) {
		make(&frame, true, length);
		expect_unseen(&frame, frame.identification, frame.identification, false);
		expect_unseen(&frame, 0, frame.identification, false);
		expect_unseen(&frame, (uint16_t)random64(), frame.identification, false);
		change_ipv4(&frame, frame.identification, 0);
		expect_unseen(&frame, frame.identification, frame.identification, true);
	}
}

/* All identifications, with and without "do not fragment", for a short packet and for a full one. */
TEST(every_identification)
{
	static struct frame frame;

	for (int k = 0; k < 2; k++) {
		make(&frame, true, k ? 4096 + 28 : 28);
		for (uint32_t identification = 0; identification <= UINT16_MAX; identification++) {
			uint32_t icrc;

			frame.identification = (uint16_t)identification;
			icrc = icrc_of(&frame);
			memcpy(frame.bytes + frame.headers + frame.length, &icrc, sizeof(icrc));
			expect_unseen(&frame, 0, (uint16_t)identification, false);
		}
		/* Without the flag the only generator is the slow model: each bit alone, and some more values. */
		for (int i = 0; i < 400; i++) {
			uint16_t identification = i < 17 ? (uint16_t)(1 << i) : (uint16_t)random64();

			change_ipv4(&frame, identification, 0);
			expect_unseen(&frame, 0, identification, true);
		}
	}
}

/* Values that no completely received datagram has: fragments, and the reserved bit. */
TEST(other_flags)
{
	static struct frame frame;
	struct ipv4_unseen unseen;

	make(&frame, true, 60);
	for (int bit = 0; bit < 16; bit++) {
		if (1 << bit == 0x4000)
			continue;
		change_ipv4(&frame, frame.identification, (uint16_t)(0x4000 | 1 << bit));
		assert_false(fits(&frame, 0, &unseen));
		assert_false(fits(&frame, frame.identification, &unseen));
		change_ipv4(&frame, frame.identification, (uint16_t)(1 << bit));
		assert_false(fits(&frame, 0, &unseen));
	}
}

/* 15 bits are left: of 2^20 wrong ICRCs about 2^5 match some header. The upper limit is just below twice that. */
TEST(wrong_ones)
{
	static struct frame frame;
	struct ipv4_unseen unseen;
	int fitting = 0;

	make(&frame, true, 28);
	for (int i = 0; i < 1 << 20; i++) {
		fill(frame.bytes + frame.headers + frame.length, 4);
		fitting += fits(&frame, 0, &unseen);
	}
	assert_in_range(fitting, 12, 63);
}

/* Flipping any bit of a frame is detected, except for those that routers change. */
TEST(spoiled)
{
	static struct frame frame;
	struct ipv4_unseen unseen;

	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		make(&frame, ipv4, 64);
		assert_true(fits(&frame, frame.identification, &unseen));
		for (size_t bit = 0; bit < (frame.length + 4) * 8; bit++) {
			uint8_t *byte = &frame.bytes[frame.headers + bit / 8];

			*byte ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(fits(&frame, 63, &unseen), bit / 8 == 4);
			*byte ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* IPv6 has no identification; nor is one found for data that is not a packet. */
TEST(no_identification)
{
	static struct frame frame;
	struct ipv4_unseen unseen;
	uint8_t *icrc;

	make(&frame, false, 64);
	assert_true(fits(&frame, UINT16_MAX, &unseen));
	assert_false(unseen.solved);
	icrc = frame.bytes + frame.headers + frame.length;
	for (int value = 1; value < 256; value++) {
		*icrc ^= (uint8_t)value;
		assert_false(fits(&frame, UINT16_MAX, &unseen));
		*icrc ^= (uint8_t)value;
	}
	make(&frame, true, 63);
	frame.identification |= 1;
	put_ipv4(&frame);
	model(frame.bytes, frame.headers + frame.length, frame.bytes + frame.headers + frame.length);
	assert_false(fits(&frame, 0, &unseen));
}

/* A length beyond the table of powers does not cause a read beyond it. */
TEST(too_long)
{
	struct packet_path path = {.source.raw = {[10] = 0xff, [11] = 0xff}};
	uint8_t *bytes = calloc(1, UINT16_MAX);

	for (size_t length = 16000; length + 4 <= UINT16_MAX; length += 4) {
		struct ipv4_unseen unseen = {.identification = UINT16_MAX};

		assert_false(roce_icrc_fits(&path, 1, 4791, &unseen, bytes, length));
	}
	free(bytes);
}

/* Starts that are used for many paths, ports and lengths in turn give the same as new ones. */
TEST(starts)
{
	static struct frame frames[24];
	struct roce_icrc_start kept[ROCE_ICRC_STARTS] = {0};

	for (int i = 0; i < 24; i++) {
		make(&frames[i], i % 2, ROCE_BTH_BYTES + 4 * (random64() % 3));
		if (i % 3 == 0)
			frames[i].source_port = frames[0].source_port;
		if (i % 4 == 0)
			frames[i].path.source = frames[0].path.source;
		if (i % 8 == 0)
			frames[i].destination_port = frames[0].destination_port;
	}
	for (int i = 0; i < 4000; i++) {
		struct frame *frame = &frames[random64() % 24];
		uint8_t *bytes = frame->bytes + frame->headers;
		const struct roce_icrc_start *start;
		struct ipv4_unseen unseen;
		uint32_t icrc;

		bytes[4] = random64() % 2 ? (uint8_t)random64() : 0;
		start = roce_icrc_start(kept, &frame->path, frame->source_port, frame->destination_port, frame->length);
		icrc = roce_icrc_from(start, frame->identification, bytes);
		assert_int_equal(icrc, icrc_of(frame));
		memcpy(bytes + frame->length, &icrc, sizeof(icrc));
		unseen = (struct ipv4_unseen){.identification = frame->identification};
		assert_true(roce_icrc_fits_from(start, &unseen, bytes));
		assert_false(unseen.solved);
	}
}

/* x^n of the table times x^-n is 1: computed by the model's own division. */
TEST(powers)
{
	static const uint8_t zeros[256];

	for (int i = 0; i < ICRC_POWERS; i++) {
		uint32_t fine = reversed(icrc_powers_fine[i]), coarse = reversed(icrc_powers_coarse[i]);

		for (int word = 0; word < i; word++)
			fine = divide(fine, zeros, 4);
		for (int words = 0; words < i; words++)
			coarse = divide(coarse, zeros, 256);
		/* The remaining factor is x^-1; times x it is 1. */
		assert_int_equal(fine << 1 ^ (fine >> 31 ? 0x04c11db7 : 0), 1);
		assert_int_equal(coarse << 1 ^ (coarse >> 31 ? 0x04c11db7 : 0), 1);
	}
}
