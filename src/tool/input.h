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
enum capture_result { CAPTURE_PACKET, CAPTURE_NONE, CAPTURE_END, CAPTURE_BROKEN };

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
	struct input bytes;
	uint32_t link_type; /* enum link_type, or another */
	char comment[4096]; /* that it has; "" if none, cut to this size */
};

/**
 * Packet @number (from 1) of the capture @file, which is at its beginning. CAPTURE_NONE: it is no capture, and as little of the
 * file as is needed for that is read, into @packet; with these two @packet has bytes, which are the caller's. CAPTURE_END: it
 * has not so many packets. CAPTURE_BROKEN: it is damaged before that one.
 */
enum capture_result capture_read(FILE *file, unsigned long number, struct capture_packet *packet);

#endif
