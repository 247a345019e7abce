/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `softhca decode` and `softhca encode` are given: hexadecimal digits on the command line, a file, or standard input. Files
 * have bytes, or hexadecimal digits, or packets (pcapng and pcap). What is read may be anything.
 */
#ifndef SOFTHCA_TOOL_INPUT_H
#define SOFTHCA_TOOL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define INPUT_MOST_BYTES (1u << 20)

/* Bytes that belong to whoever was given them: free(3). */
struct input {
	uint8_t *bytes;
	size_t length;
};

/** Opens the file @name, or standard input for "-". Exits if it cannot be read. */
FILE *input_open(const char *name);

/** All of @file. Exits if that is more than INPUT_MOST_BYTES, or an error. @name: for messages. */
struct input input_read(FILE *file, const char *name);

/** True if @text is characters and no bytes; then it has to be hexadecimal digits. */
bool input_is_text(const struct input *text);

/**
 * Bytes of hexadecimal digits: two for each byte, in the order of memory; "0x" in front of them, blanks, commas, and colons between
 * them. What ends with a colon at the beginning of a line, such as an address of a debugger, is passed over, and so is the offset
 * that dumps begin their lines with, and what is behind a |. Returns false with one line in @error if that is not what it is.
 */
bool input_from_hex(const struct input *text, struct input *bytes, char *error, size_t error_size);

/* Why a packet is not read. */
enum capture_result { CAPTURE_PACKET, CAPTURE_END, CAPTURE_BROKEN };

/* As the flags of pcapng have it (draft-ietf-opsawg-pcapng, 4.3.1). */
enum capture_way { CAPTURE_WAY_UNKNOWN, CAPTURE_WAY_IN, CAPTURE_WAY_OUT };

/* What a packet in a capture begins with: LINKTYPE_… of draft-ietf-opsawg-pcaplinktype. */
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
	uint64_t ns;        /* since 1970; 0: it does not say */
	uint32_t link_type; /* enum link_type, or another */
	enum capture_way direction;
	char comment[4096]; /* "" if none; a longer one is cut */
};

struct capture;

/**
 * Begins to read the capture @file, which is at its beginning. The caller ends it with capture_end() and closes the file. Returns NULL if
 * @file is not a capture; then @begin has the few bytes that were read for that, with room for INPUT_MOST_BYTES, and they are the
 * caller's. Exits without memory.
 */
struct capture *capture_begin(FILE *file, struct input *begin);

/** Reads the next packet. Returns CAPTURE_END after the last one, CAPTURE_BROKEN if the file is damaged at this point. */
enum capture_result capture_next(struct capture *capture, struct capture_packet *packet);

/** Frees @capture. */
void capture_end(struct capture *capture);

#endif
