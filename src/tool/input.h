/* SPDX-License-Identifier: BSD-2-Clause */
/* Untrusted input: hexadecimal digits on the command line, or a file of bytes, digits or packets (pcapng and pcap). */
#ifndef SOFTHCA_TOOL_INPUT_H
#define SOFTHCA_TOOL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define INPUT_MOST_BYTES (1u << 20)

/* The receiver frees @bytes with free(3). */
struct input {
	uint8_t *bytes;
	size_t length;
};

/** "-" is standard input. Exits on failure. */
FILE *input_open(const char *name);

/** Exits on an error or beyond INPUT_MOST_BYTES. @name: for messages. */
struct input input_read(FILE *file, const char *name);

/** Returns true for text, which must be hexadecimal digits, rather than bytes. */
bool input_is_text(const struct input *text);

/**
 * Converts two digits per byte, in the order of memory, optionally after "0x" and separated by blanks, commas or
 * colons. Skips labels with a colon (addresses of a debugger) and offsets at the start of a line, and everything after
 * a |. Returns false with a message in @error for other text.
 */
bool input_from_hex(const struct input *text, struct input *bytes, char *error, size_t error_size);

enum capture_result { CAPTURE_PACKET, CAPTURE_END, CAPTURE_BROKEN };

/* As in the flags of pcapng (draft-ietf-opsawg-pcapng, 4.3.1). */
enum capture_way { CAPTURE_WAY_UNKNOWN, CAPTURE_WAY_IN, CAPTURE_WAY_OUT };

/* First header of packets: LINKTYPE_… of draft-ietf-opsawg-pcaplinktype. */
enum link_type {
	LINK_TYPE_ETHERNET = 1,
	LINK_TYPE_RAW = 101,
	LINK_TYPE_COOKED = 113,
	LINK_TYPE_IPV4 = 228,
	LINK_TYPE_IPV6 = 229,
	LINK_TYPE_COOKED_2 = 276,
};

struct capture_packet {
	const uint8_t *bytes; /* valid until the next packet is read */
	size_t length;
	uint64_t ns;        /* since 1970; 0 if not recorded */
	uint32_t link_type; /* enum link_type, or another */
	enum capture_way direction;
	char comment[4096]; /* "" if none; longer ones are truncated */
};

struct capture;

/**
 * Begins to read @file from its start; the caller closes it after capture_end(). Returns NULL if it is not a capture:
 * the caller frees @begin, the bytes read so far, with room for INPUT_MOST_BYTES. Exits without memory.
 */
struct capture *capture_begin(FILE *file, struct input *begin);

/** Returns CAPTURE_END after the last packet, CAPTURE_BROKEN at damage. */
enum capture_result capture_next(struct capture *capture, struct capture_packet *packet);

void capture_end(struct capture *capture);

#endif
