/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as text, for `softhca decode`: a decoder prints the parts (format/fields.h) that the bytes consist of. An
 * incomplete part is printed as bytes, and the first fault is kept. So the text contains all bytes, in order, and
 * `softhca encode` turns it back (tool/encoder.h).
 *
 * A part is a line with its name, then a line for each field:
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
	size_t at;  /* printed so far */
	size_t end; /* limit for the parts that are taken; at most length */
	FILE *out;
	char fault[160]; /* the first; empty if there is none */
};

/** The caller keeps @bytes until the end. */
void decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t length, FILE *out);

/** Keeps the first fault only. */
void decoder_fault(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints a note, which encoding skips. */
void decoder_note(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline size_t decoder_left(const struct decoder *decoder)
{
	return decoder->end - decoder->at;
}

/**
 * Prints @part and the @tail bytes after it. Returns the address of the part. If it is incomplete, prints the rest as
 * bytes, records a fault and returns NULL.
 */
const uint8_t *decoder_take(struct decoder *decoder, enum part part, size_t tail);

/** Prints everything up to @end as bytes. */
void decoder_rest(struct decoder *decoder, size_t end);

/** Returns field @name. */
uint64_t part_get(const uint8_t *bytes, enum part part, const char *name);

/** Prints @part and the @tail bytes after it. */
void part_print(FILE *out, enum part part, const uint8_t *bytes, size_t tail);

/** Writes the decoded @text, which it overwrites, and @fault, if not empty, as an object. */
void decoded_print_json(FILE *out, char *text, const char *fault);

/* Not in a WQE, but its segments depend on it. */
enum decode_transport { DECODE_RC, DECODE_UC, DECODE_UD, DECODE_XRC, DECODE_DC };

/* First header. ANY: Ethernet, IP or BTH, by contents. */
enum packet_begin { BEGIN_ANY, BEGIN_ETHERNET, BEGIN_IP, BEGIN_COOKED, BEGIN_COOKED_2 };

/** Returns BEGIN_ANY for unknown types. */
enum packet_begin packet_begin_of(uint32_t link_type);

/* Each decodes up to the end. */
void decode_wqes(struct decoder *decoder, enum decode_transport transport);
void decode_cqes(struct decoder *decoder, uint32_t cqe_size);
void decode_mkey(struct decoder *decoder);
/** Decodes a BSF; a signature BSF with its crypto BSF. */
void decode_bsf(struct decoder *decoder);
void decode_packet(struct decoder *decoder, enum packet_begin begin);

#endif
