/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet of a capture: pcapng as this device writes it (filter/capture.h), and pcapng and pcap of other programs, in the
 * byte order of either kind of machine. Formats: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap.
 */
#include <stdlib.h>
#include <string.h>

#include "tool/input.h"

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6 };
enum { OPTION_COMMENT = 1 };
#define PCAPNG_ORDER 0x1a2b3c4du
#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS 0xa1b23c4du

#define MOST_INTERFACES 4096u /* of a section */

struct capture {
	FILE *file;
	bool swapped; /* written on a machine of the other byte order */
	uint8_t *block;
	uint32_t interfaces; /* of the section, so far */
	uint16_t link_type[MOST_INTERFACES];
};

static uint32_t number_at(const struct capture *capture, const uint8_t *bytes)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	return capture->swapped ? __builtin_bswap32(number) : number;
}

static uint16_t short_at(const struct capture *capture, const uint8_t *bytes)
{
	uint16_t number;

	memcpy(&number, bytes, sizeof(number));
	return capture->swapped ? __builtin_bswap16(number) : number;
}

static bool read_bytes(const struct capture *capture, uint8_t *to, size_t bytes)
{
	return fread(to, 1, bytes, capture->file) == bytes;
}

/* ---- pcapng ----------------------------------------------------------------------------------------------------- */

/* The first comment among the options in [@at, @end) of the block. */
static void find_comment(const struct capture *capture, size_t at, size_t end, char *comment, size_t size)
{
	while (end - at >= 4) {
		uint16_t code = short_at(capture, capture->block + at),
			 length = short_at(capture, capture->block + at + 2);

		at += 4;
		if (length > end - at || !code)
			return;
		if (code == OPTION_COMMENT) {
			snprintf(comment, size, "%.*s", (int)length, (const char *)capture->block + at);
			return;
		}
		length = (uint16_t)(length > UINT16_MAX - 3 ? UINT16_MAX : (length + 3) & ~3);
		at += length < end - at ? length : end - at;
	}
}

/* The interface of the block, whose body has 8 bytes at least. */
static bool take_interface(struct capture *capture)
{
	if (capture->interfaces == MOST_INTERFACES)
		return false;
	capture->link_type[capture->interfaces++] = short_at(capture, capture->block);
	return true;
}

/* The packet of the block, whose body has @bytes. */
static enum capture_result take_packet(const struct capture *capture, uint32_t type, size_t bytes,
				       struct capture_packet *packet)
{
	size_t header = type == BLOCK_PACKET ? 20 : 4, length;
	uint32_t interface = 0;

	if (bytes < header)
		return CAPTURE_BROKEN;
	if (type == BLOCK_PACKET)
		interface = number_at(capture, capture->block);
	if (interface >= capture->interfaces)
		return CAPTURE_BROKEN;
	packet->link_type = capture->link_type[interface];
	length = number_at(capture, capture->block + (type == BLOCK_PACKET ? 12 : 0));
	/* A simple block tells the length on the wire, which may be more than was kept. */
	if (type == BLOCK_SIMPLE && length > bytes - header)
		length = bytes - header;
	if (length > bytes - header)
		return CAPTURE_BROKEN;
	packet->bytes = (struct input){capture->block, length};
	length = (length + 3) & ~(size_t)3;
	if (type == BLOCK_PACKET && length <= bytes - header)
		find_comment(capture, header + length, bytes, packet->comment, sizeof(packet->comment));
	memmove(capture->block, capture->block + header, packet->bytes.length);
	return CAPTURE_PACKET;
}

static enum capture_result read_pcapng(struct capture *capture, unsigned long number, struct capture_packet *packet)
{
	uint8_t head[8];
	/* The type of the first block is read already, and its length is not known before its byte order is. */
	bool first = true;

	for (;;) {
		uint32_t type, length, body;

		if (!read_bytes(capture, head + (first ? 4 : 0), first ? 4 : 8))
			return feof(capture->file) && !first ? CAPTURE_END : CAPTURE_BROKEN;
		memcpy(&type, head, sizeof(type));
		if (first || type == BLOCK_SECTION) {
			if (!read_bytes(capture, capture->block, 4))
				return CAPTURE_BROKEN;
			memcpy(&body, capture->block, sizeof(body));
			capture->swapped = body == __builtin_bswap32(PCAPNG_ORDER);
			if (!capture->swapped && body != PCAPNG_ORDER)
				return CAPTURE_BROKEN;
			type = BLOCK_SECTION;
			capture->interfaces = 0;
		} else {
			type = number_at(capture, head);
		}
		first = false;
		length = number_at(capture, head + 4);
		body = length - 12 - (type == BLOCK_SECTION ? 4 : 0);
		if (length < 16 || length % 4 || body > INPUT_MOST_BYTES ||
		    !read_bytes(capture, capture->block, body) || !read_bytes(capture, head, 4))
			return CAPTURE_BROKEN;
		if (type == BLOCK_INTERFACE && (body < 8 || !take_interface(capture)))
			return CAPTURE_BROKEN;
		if ((type == BLOCK_PACKET || type == BLOCK_SIMPLE) && !--number)
			return take_packet(capture, type, body, packet);
	}
}

/* ---- pcap ------------------------------------------------------------------------------------------------------- */

static enum capture_result read_pcap(const struct capture *capture, unsigned long number, struct capture_packet *packet)
{
	uint8_t head[20];

	/* What is left of the file's header: version, snap length, link type. */
	if (!read_bytes(capture, head, 20))
		return CAPTURE_BROKEN;
	/* The upper bits tell of a frame check sequence. */
	packet->link_type = number_at(capture, head + 16) & 0xffff;
	for (;;) {
		uint32_t length;

		if (!read_bytes(capture, head, 16))
			return feof(capture->file) ? CAPTURE_END : CAPTURE_BROKEN;
		length = number_at(capture, head + 8);
		if (length > INPUT_MOST_BYTES || !read_bytes(capture, capture->block, length))
			return CAPTURE_BROKEN;
		if (!--number) {
			packet->bytes = (struct input){capture->block, length};
			return CAPTURE_PACKET;
		}
	}
}

static enum capture_result read_either(struct capture *capture, unsigned long number, struct capture_packet *packet)
{
	uint32_t magic;

	packet->bytes = (struct input){capture->block, fread(capture->block, 1, sizeof(magic), capture->file)};
	if (packet->bytes.length < sizeof(magic))
		return CAPTURE_NONE;
	memcpy(&magic, capture->block, sizeof(magic));
	if (magic == BLOCK_SECTION)
		return read_pcapng(capture, number, packet);
	capture->swapped =
		magic == __builtin_bswap32(PCAP_MICROSECONDS) || magic == __builtin_bswap32(PCAP_NANOSECONDS);
	if (capture->swapped || magic == PCAP_MICROSECONDS || magic == PCAP_NANOSECONDS)
		return read_pcap(capture, number, packet);
	return CAPTURE_NONE;
}

enum capture_result capture_read(FILE *file, unsigned long number, struct capture_packet *packet)
{
	struct capture capture = {.file = file, .block = malloc(INPUT_MOST_BYTES)};
	enum capture_result result;

	*packet->comment = '\0';
	if (!capture.block)
		return CAPTURE_BROKEN;
	result = read_either(&capture, number, packet);
	if (result == CAPTURE_END || result == CAPTURE_BROKEN)
		free(capture.block);
	return result;
}
