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

/** True if @text consists of hexadecimal digits and what may be between them. */
bool input_is_hex(const struct input *text);

/**
 * Bytes of hexadecimal digits: two for each byte, in the order of memory; "0x" in front of them, blanks, commas, and colons between
 * them. What ends with a colon at the beginning of a line, such as an address of a debugger, is passed over. Returns false with
 * one line in @error if that is not what it is.
 */
bool input_from_hex(const struct input *text, struct input *bytes, char *error, size_t error_size);

/* Why a packet is not read. */
enum capture_result { CAPTURE_PACKET, CAPTURE_NONE, CAPTURE_END, CAPTURE_BROKEN };

/**
 * Packet @number (from 1) of the capture @file, which is at its beginning, and the comment that it has ("" if none, cut to its
 * size). CAPTURE_NONE: it is no capture, and as little of the file as is needed for that is read, into @packet; with these two
 * @packet has bytes, which are the caller's. CAPTURE_END: it has not so many packets. CAPTURE_BROKEN: it is damaged before that
 * one.
 */
enum capture_result capture_read(FILE *file, unsigned long number, struct input *packet, char *comment,
				 size_t comment_size);

#endif
