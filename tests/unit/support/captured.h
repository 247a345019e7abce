/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the RoCEv2 frames of a pcapng file (tests/data/rxe/README.md). */
#ifndef SOFTHCA_TESTS_UNIT_CAPTURED_H
#define SOFTHCA_TESTS_UNIT_CAPTURED_H

#include "test_case.h"

#include <infiniband/verbs.h>

enum { CAPTURED_MOST = 64, CAPTURED_FILE_BYTES = 1 << 16, CAPTURED_ETHERNET = 14 };

struct captured_frame {
	const char *file;
	unsigned int number; /* in its file, starting at 1 */
	bool ipv4;
	union ibv_gid source, destination;
	uint16_t identification, source_port; /* identification: IPv4 identification */
	const uint8_t *bth;
	uint32_t length; /* from BTH to pad, without ICRC */
	bool from_rxe;
};

struct captured {
	uint8_t bytes[CAPTURED_FILE_BYTES];
	struct captured_frame frame[CAPTURED_MOST];
	unsigned int count;
};

static inline uint32_t captured_big(const uint8_t *bytes, unsigned int count)
{
	uint32_t value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

static inline uint32_t captured_little(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

static inline void captured_add(struct captured *captured, const char *file, const uint8_t *bytes)
{
	struct captured_frame *frame = &captured->frame[captured->count];
	const uint8_t *ip = bytes + CAPTURED_ETHERNET, *udp;

	assert_true(captured->count < CAPTURED_MOST);
	*frame = (struct captured_frame){.file = file, .number = ++captured->count, .ipv4 = ip[0] >> 4 == 4};
	udp = ip + (frame->ipv4 ? 20 : 40);
	if (frame->ipv4) {
		frame->source.raw[10] = frame->source.raw[11] = 0xff;
		frame->destination = frame->source;
		memcpy(frame->source.raw + 12, ip + 12, 4);
		memcpy(frame->destination.raw + 12, ip + 16, 4);
		frame->identification = (uint16_t)captured_big(ip + 4, 2);
	} else {
		memcpy(frame->source.raw, ip + 8, 16);
		memcpy(frame->destination.raw, ip + 24, 16);
	}
	frame->source_port = (uint16_t)captured_big(udp, 2);
	frame->bth = udp + 8;
	frame->length = captured_big(udp + 4, 2) - 8 - 4;
	/* The other host is 10.9.0.1 and fd09::1. */
	frame->from_rxe = frame->source.raw[15] != 1;
}

/* Reads the file @name of tests/data/rxe: enhanced packet blocks, in the byte order of x86. */
static inline void captured_read(struct captured *captured, const char *name)
{
	char path[4096];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.pcapng", RXE_CAPTURES, name);
	file = fopen(path, "rb");
	if (!file)
		fail_msg("%s cannot be opened", path);
	length = fread(captured->bytes, 1, sizeof(captured->bytes), file);
	fclose(file);
	assert_in_range(length, 28, sizeof(captured->bytes) - 1);
	captured->count = 0;
	for (size_t at = 0; at + 12 <= length; at += captured_little(captured->bytes + at + 4))
		if (captured_little(captured->bytes + at) == 6)
			captured_add(captured, name, captured->bytes + at + 28);
	assert_int_not_equal(captured->count, 0);
}

static inline uint8_t captured_opcode(const struct captured_frame *frame)
{
	return frame->bth[0];
}

static inline uint32_t captured_qpn(const struct captured_frame *frame)
{
	return captured_big(frame->bth + 5, 3);
}

static inline uint32_t captured_psn(const struct captured_frame *frame)
{
	return captured_big(frame->bth + 9, 3);
}

#endif
