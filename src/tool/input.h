/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input of `softhca decode` and `softhca encode`: hexadecimal digits on the command line, a file, or standard input.
 * Files contain bytes, hexadecimal digits, or packets (pcapng and pcap). Input is untrusted.
 */
#ifndef SOFTHCA_TOOL_INPUT_H
#define SOFTHCA_TOOL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define INPUT_MOST_BYTES (1u << 20)

/* Bytes that the receiver frees with free(3). */
struct input {
	uint8_t *bytes;
	size_t length;
};

/** Opens the file @name, or standard input for "-". Exits if it cannot be read. */
FILE *input_open(const char *name);

/** Reads all of @file. Exits on an error or if it exceeds INPUT_MOST_BYTES. @name: for messages. */
struct input input_read(FILE *file, const char *name);

/** Returns true if @text is text rather than bytes; it must consist of hexadecimal digits then. */
bool input_is_text(const struct input *text);

/**
 * Converts hexadecimal digits to bytes: two digits per byte, in the order of memory, optionally preceded by "0x" and
 * separated by blanks, commas or colons. Skips labels at the start of a line that end with a colon, such as addresses
 * of a debugger, offsets at the start of lines of dumps, and everything after a |. Returns false with a message in
 * @error for any other text.
 */
bool input_from_hex(const struct input *text, struct input *bytes, char *error, size_t error_size);

/* Result of reading a packet. */
enum capture_result { CAPTURE_PACKET, CAPTURE_END, CAPTURE_BROKEN };

/* Directions, as in the flags of pcapng (draft-ietf-opsawg-pcapng, 4.3.1). */
enum capture_way { CAPTURE_WAY_UNKNOWN, CAPTURE_WAY_IN, CAPTURE_WAY_OUT };

/* First header of packets in a capture: LINKTYPE_… of draft-ietf-opsawg-pcaplinktype. */
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
 * Begins to read the capture @file from its start. The caller ends it with capture_end() and closes the file. Returns
 * NULL if @file is not a capture; @begin then has the bytes read so far, with room for INPUT_MOST_BYTES, and the caller
 * frees them. Exits without memory.
 */
struct capture *capture_begin(FILE *file, struct input *begin);

/** Reads the next packet. Returns CAPTURE_END after the last one, CAPTURE_BROKEN if the file is damaged at this point. */
enum capture_result capture_next(struct capture *capture, struct capture_packet *packet);

/** Frees @capture. */
void capture_end(struct capture *capture);

#endif
