/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads packets of captures, in either byte order: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap. */
#include <stdlib.h>
#include <string.h>

#include "tool/input.h"
#include "tool/tool.h"

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6 };
enum { OPTION_COMMENT = 1, OPTION_FLAGS = 2, OPTION_RESOLUTION = 9 };
#define PCAPNG_ORDER 0x1a2b3c4du
#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS 0xa1b23c4du

#define MOST_INTERFACES 4096u /* per section */
#define SECOND_NS UINT64_C(1000000000)

struct capture {
	FILE *file;
	bool swapped; /* written in the other byte order */
	bool pcapng;
	bool begun;      /* only the type of the first pcapng block was read so far */
	uint64_t second; /* units of time per second in a pcap */
	uint8_t *block;
	uint32_t interfaces; /* number in the section so far; a pcap has one */
	struct interface {
		uint16_t link_type;
		uint8_t resolution; /* resolution of times: an exponent of 10, or of 2 if bit 7 is set */
	} interface[MOST_INTERFACES];
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

/* Returns the value and @length of the first option @code in [@at, @end), or NULL. */
static const uint8_t *block_option(const struct capture *capture, size_t at, size_t end, uint16_t code,
				   uint16_t *length)
{
	while (end - at >= 4) {
		uint16_t this = short_at(capture, capture->block + at);
		size_t padded;

		*length = short_at(capture, capture->block + at + 2);
		at += 4;
		if (*length > end - at || !this)
			return NULL;
		if (this == code)
			return capture->block + at;
		padded = ((size_t)*length + 3) & ~(size_t)3;
		at += padded < end - at ? padded : end - at;
	}
	return NULL;
}

/* The body has @bytes, at least 8. */
static bool take_interface(struct capture *capture, size_t bytes)
{
	struct interface *interface = &capture->interface[capture->interfaces];
	const uint8_t *resolution;
	uint16_t length;

	if (capture->interfaces == MOST_INTERFACES)
		return false;
	capture->interfaces++;
	interface->link_type = short_at(capture, capture->block);
	resolution = block_option(capture, 8, bytes, OPTION_RESOLUTION, &length);
	interface->resolution = resolution && length ? *resolution : 6;
	return true;
}

/* Returns ns, or 0 for absurd resolutions. */
static uint64_t ns_of(const struct interface *interface, uint64_t ticks)
{
	unsigned int exponent = interface->resolution & 0x7f;
	__uint128_t ns = (__uint128_t)ticks * SECOND_NS;

	if (exponent > 63)
		return 0;
	if (interface->resolution & 0x80)
		return (uint64_t)(ns >> exponent);
	while (exponent--)
		ns /= 10;
	return (uint64_t)ns;
}

static void packet_options_read(const struct capture *capture, size_t at, size_t end, struct capture_packet *packet)
{
	uint16_t length;
	const uint8_t *option = block_option(capture, at, end, OPTION_COMMENT, &length);

	if (option)
		snprintf(packet->comment, sizeof(packet->comment), "%.*s", (int)length, (const char *)option);
	option = block_option(capture, at, end, OPTION_FLAGS, &length);
	if (option && length == 4)
		packet->direction = (enum capture_way)(number_at(capture, option) & 3);
}

/* The body has @bytes. */
static enum capture_result take_packet(const struct capture *capture, uint32_t type, size_t bytes,
				       struct capture_packet *packet)
{
	size_t header = type == BLOCK_PACKET ? 20 : 4, length;
	const struct interface *interface = capture->interface;

	if (bytes < header)
		return CAPTURE_BROKEN;
	if (type == BLOCK_PACKET) {
		uint32_t number = number_at(capture, capture->block);

		if (number >= capture->interfaces)
			return CAPTURE_BROKEN;
		interface += number;
		packet->ns = ns_of(interface, (uint64_t)number_at(capture, capture->block + 4) << 32 |
						      number_at(capture, capture->block + 8));
	} else if (!capture->interfaces) {
		return CAPTURE_BROKEN;
	}
	packet->link_type = interface->link_type;
	length = number_at(capture, capture->block + (type == BLOCK_PACKET ? 12 : 0));
	/* A simple block has the length on the wire, not the captured length. */
	if (type == BLOCK_SIMPLE && length > bytes - header)
		length = bytes - header;
	if (length > bytes - header)
		return CAPTURE_BROKEN;
	packet->bytes = capture->block + header;
	packet->length = length;
	length = (length + 3) & ~(size_t)3;
	if (type == BLOCK_PACKET && length <= bytes - header)
		packet_options_read(capture, header + length, bytes, packet);
	return CAPTURE_PACKET;
}

static enum capture_result next_of_pcapng(struct capture *capture, struct capture_packet *packet)
{
	uint8_t head[8];

	for (;;) {
		uint32_t type, length, body;
		/* The type of the first block was read already, before its byte order is known. */
		bool first = capture->begun;

		capture->begun = false;
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
		length = number_at(capture, head + 4);
		body = length - 12 - (type == BLOCK_SECTION ? 4 : 0);
		if (length < 16 || length % 4 || body > INPUT_MOST_BYTES ||
		    !read_bytes(capture, capture->block, body) || !read_bytes(capture, head, 4))
			return CAPTURE_BROKEN;
		if (type == BLOCK_INTERFACE && (body < 8 || !take_interface(capture, body)))
			return CAPTURE_BROKEN;
		if (type == BLOCK_PACKET || type == BLOCK_SIMPLE)
			return take_packet(capture, type, body, packet);
	}
}

/* ---- pcap ------------------------------------------------------------------------------------------------------- */

static enum capture_result next_of_pcap(struct capture *capture, struct capture_packet *packet)
{
	uint8_t head[20];
	uint32_t length;

	if (!capture->begun) {
		/* Rest of the file header; the upper bits of the link type describe frame check sequences. */
		if (!read_bytes(capture, head, 20))
			return CAPTURE_BROKEN;
		capture->begun = true;
		capture->interface[0].link_type = number_at(capture, head + 16) & 0xffff;
	}
	if (!read_bytes(capture, head, 16))
		return feof(capture->file) ? CAPTURE_END : CAPTURE_BROKEN;
	length = number_at(capture, head + 8);
	if (length > INPUT_MOST_BYTES || !read_bytes(capture, capture->block, length))
		return CAPTURE_BROKEN;
	packet->link_type = capture->interface[0].link_type;
	packet->ns =
		number_at(capture, head) * SECOND_NS + number_at(capture, head + 4) * (SECOND_NS / capture->second);
	packet->bytes = capture->block;
	packet->length = length;
	return CAPTURE_PACKET;
}

/* ---- either ----------------------------------------------------------------------------------------------------- */

struct capture *capture_begin(FILE *file, struct input *begin)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	uint32_t magic = 0;
	bool known;

	*begin = (struct input){malloc(INPUT_MOST_BYTES), 0};
	if (!capture || !begin->bytes)
		tool_fail(EXIT_FAILURE, "out of memory");
	/* cppcheck-suppress nullPointerRedundantCheck */
	capture->file = file;
	begin->length = fread(begin->bytes, 1, sizeof(magic), file);
	if (begin->length == sizeof(magic))
		memcpy(&magic, begin->bytes, sizeof(magic));
	capture->pcapng = capture->begun = magic == BLOCK_SECTION;
	capture->swapped =
		magic == __builtin_bswap32(PCAP_MICROSECONDS) || magic == __builtin_bswap32(PCAP_NANOSECONDS);
	if (capture->swapped)
		magic = __builtin_bswap32(magic);
	capture->second = magic == PCAP_MICROSECONDS ? 1000000 : SECOND_NS;
	known = capture->pcapng || magic == PCAP_MICROSECONDS || magic == PCAP_NANOSECONDS;
	if (!known) {
		free(capture);
		return NULL;
	}
	capture->block = begin->bytes;
	begin->bytes = NULL;
	return capture;
}

enum capture_result capture_next(struct capture *capture, struct capture_packet *packet)
{
	*packet = (struct capture_packet){0};
	return capture->pcapng ? next_of_pcapng(capture, packet) : next_of_pcap(capture, packet);
}

void capture_end(struct capture *capture)
{
	free(capture->block);
	free(capture);
}
