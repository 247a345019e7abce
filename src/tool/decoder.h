/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as text, for `softhca decode`: a decoder prints the parts (format/fields.h) that the bytes consist of. The bytes may be
 * anything: an incomplete part is printed as bytes, and the first fault is kept. The text therefore contains all bytes, in order, and
 * `softhca encode` turns it back into the same bytes (tool/encoder.h).
 *
 * A part is a line with its name, followed by a line for each field:
 *
 *     data
 *       byte_count               = 4096
 *       lkey                     = 0x1000
 *
 * The text after # is the meaning of the number. A struct decoder belongs to the caller; one thread.
 */
#ifndef SOFTHCA_TOOL_DECODER_H
#define SOFTHCA_TOOL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/fields.h"

struct decoder {
	const uint8_t *bytes;
	size_t length;
	size_t at;  /* bytes printed so far */
	size_t end; /* limit for the parts that are taken; at most length */
	FILE *out;
	char fault[160]; /* description of the first fault; empty if there is none */
};

/** Begins to decode the @length bytes at @bytes, which the caller keeps until the end. */
void decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t length, FILE *out);

/** Records a fault, unless there is one already. */
void decoder_fault(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints a note about what follows; encoding skips it. */
void decoder_note(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Returns the number of bytes up to the end. */
static inline size_t decoder_left(const struct decoder *decoder)
{
	return decoder->end - decoder->at;
}

/**
 * Prints @part and the @tail bytes after it, and advances past them. Returns the address of the part. If it is
 * incomplete, prints the rest as bytes, up to the end, records a fault and returns NULL.
 */
const uint8_t *decoder_take(struct decoder *decoder, enum part part, size_t tail);

/** Prints everything up to @end as bytes. */
void decoder_rest(struct decoder *decoder, size_t end);

/** Returns the number in field @name of @part, which is at @bytes. */
uint64_t part_get(const uint8_t *bytes, enum part part, const char *name);

/** Prints @part and the @tail bytes after it. */
void part_print(FILE *out, enum part part, const uint8_t *bytes, size_t tail);

/** Writes the decoded @text, which it overwrites, and @fault, if that is not empty, to @out as an object. */
void decoded_print_json(FILE *out, char *text, const char *fault);

/* The transport of the queue pair, which a WQE does not contain: the segments after the control segment depend on it. */
enum decode_transport { DECODE_RC, DECODE_UC, DECODE_UD, DECODE_XRC, DECODE_DC };

/* The first header of a packet. ANY: Ethernet, IP or the base transport header, distinguished by their contents. */
enum packet_begin { BEGIN_ANY, BEGIN_ETHERNET, BEGIN_IP, BEGIN_COOKED, BEGIN_COOKED_2 };

/** Returns the first header of packets in a capture with @link_type (enum link_type); BEGIN_ANY: the type is unknown. */
enum packet_begin packet_begin_of(uint32_t link_type);

/* Each decodes everything up to the end. */
void decode_wqes(struct decoder *decoder, enum decode_transport transport);
void decode_cqes(struct decoder *decoder, uint32_t cqe_size);
void decode_mkey(struct decoder *decoder);
/** Decodes one BSF, or a signature BSF and the crypto BSF after it. */
void decode_bsf(struct decoder *decoder);
/** Decodes a packet that begins with the header @begin. */
void decode_packet(struct decoder *decoder, enum packet_begin begin);

#endif
