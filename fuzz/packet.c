/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the parser of frames: a frame is either refused by a rule of frames, or is a packet that is written again with the
 * same bytes, except ignored ones; the ICRC matches with any IPv4 identification.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/roce.h"

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                  \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

enum { MOST = 9000 };

static void check_refusal(const struct refusal *why, size_t size)
{
	CHECK(why->rule >= RULE_FRAME_SHORT && why->rule <= RULE_FRAME_MASKS);
	CHECK(size >= ROCE_BTH_BYTES || why->rule == RULE_FRAME_SHORT);
}

static bool is_masked(const struct packet *packet)
{
	return packet->message == MESSAGE_MASKED_COMPARE_SWAP || packet->message == MESSAGE_MASKED_FETCH_ADD;
}

/* Writes the frame of @packet with @payload. */
static size_t write_frame(uint8_t *to, const struct packet *packet, const uint8_t *payload, uint32_t length)
{
	size_t size = roce_headers_write(to, packet, 0, packet->place, length);

	CHECK(size >= ROCE_BTH_BYTES && size <= ROCE_MOST_HEADERS);
	if (is_masked(packet))
		return size + roce_masks_write(to + size, packet);
	if (length)
		memcpy(to + size, payload, length);
	memset(to + size + length, 0, roce_pad(length));
	return size + length + roce_pad(length);
}

/* Sets bytes that a parser ignores to the values that a writer uses. */
static void normalize(uint8_t *bytes, size_t size, const struct packet *packet)
{
	const uint16_t headers = packet_opcodes[bytes[0]].headers;
	size_t source = ROCE_BTH_BYTES + (headers & HEADER_XRCETH ? 4 : 0) + (headers & HEADER_DCETH ? 24 : 0);
	size_t pad = bytes[1] >> 4 & 3;

	bytes[1] |= 0x40;
	if (!(packet->place & PLACE_LAST))
		bytes[1] &= 0x7f;
	bytes[2] |= 0x80;
	bytes[4] = 0;
	bytes[8] &= 0x80;
	if (packet->message == MESSAGE_CONGESTION) {
		bytes[1] &= (uint8_t)~0x40;
		bytes[4] = 0x40;
	}
	if (headers & HEADER_DETH)
		bytes[16] = 0;
	if (headers & HEADER_XRCETH)
		bytes[12] = 0;
	if (headers & HEADER_DCETH)
		bytes[28] = bytes[32] = 0;
	if (packet->message == MESSAGE_FETCH_ADD)
		memset(bytes + source + 20, 0, 8);
	if (packet->message == MESSAGE_MASKED_FETCH_ADD)
		memset(bytes + size - packet->operand_bytes, 0, packet->operand_bytes);
	/* More padding than the payload needs means a negative payload length. */
	memset(bytes + size - pad, 0, pad);
}

static void check_packet(struct packet *packet, uint8_t *bytes, size_t size)
{
	static uint8_t written[MOST + ROCE_MOST_HEADERS];
	static struct packet again;
	uint32_t length = (uint32_t)packet->payload.length, headers;
	const uint8_t *payload = length ? packet->payload.part[0].address : NULL;
	struct refusal why;
	size_t wrote;

	CHECK(length <= size - ROCE_BTH_BYTES);
	CHECK(!length || (payload > bytes && length <= (size_t)(bytes + size - payload)));
	wrote = write_frame(written, packet, payload, length);
	normalize(bytes, size, packet);
	CHECK(wrote == size);
	CHECK(!memcmp(written, bytes, size));
	headers = roce_headers_parse(&again, written, wrote, &why);
	CHECK(headers == size - length - (is_masked(packet) ? 2u * packet->operand_bytes : roce_pad(length)));
	CHECK(!roce_parse(&again, written, wrote, &why));
	CHECK(again.payload.length == length);
}

/* Checks IPv4 with an unknown identification. */
static void check_icrc(const uint8_t *data, size_t size)
{
	struct packet_path path = {.source.raw = {[10] = 0xff, [11] = 0xff}};
	uint16_t identification = (uint16_t)(data[0] << 8 | data[size - 1]);
	struct ipv4_unseen unseen = {.identification = 0};
	uint8_t *frame = malloc(size + ROCE_ICRC_BYTES);
	uint32_t icrc = roce_icrc(&path, 0xc000, ROCE_PORT, identification, data, size);

	CHECK(frame);
	memcpy(frame, data, size);
	memcpy(frame + size, &icrc, sizeof(icrc));
	CHECK(roce_icrc_fits(&path, 0xc000, ROCE_PORT, &unseen, frame, size));
	CHECK(unseen.identification == identification && !unseen.may_fragment);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is a frame from BTH to its end, without ICRC. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct packet packet;
	struct refusal why = {.rule = RULE_NONE};
	uint8_t *bytes;
	int result;

	if (!size || size > MOST)
		return 0;
	/* A separate allocation, so that reads beyond it are detected. */
	bytes = malloc(size);
	CHECK(bytes);
	memcpy(bytes, data, size);
	result = roce_parse(&packet, bytes, size, &why);
	CHECK(result == 0 || result == -EPROTO);
	if (result)
		check_refusal(&why, size);
	else
		check_packet(&packet, bytes, size);
	if (size % 4 == 0)
		check_icrc(data, size);
	free(bytes);
	return 0;
}
