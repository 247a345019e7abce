/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as text, for `softhca decode`: a decoder goes through them and prints the parts (format/fields.h) that they are made of.
 * The bytes may be anything: what is no whole part is printed as bytes, and the first thing that is wrong is kept. So what was
 * printed always has all bytes, in order, and `softhca encode` makes the same of it (tool/encoder.h).
 *
 * A part is its name in a line, and its fields in lines behind it:
 *
 *     data
 *       byte_count               = 4096
 *       lkey                     = 0x1000
 *
 * Behind # is what the number means. A struct decoder is the caller's; one thread.
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
	size_t at;  /* what is printed so far */
	size_t end; /* where the parts that are taken have to end; at most length */
	FILE *out;
	char fault[160]; /* the first thing that is wrong, empty: nothing */
};

/** Begins with all of @length bytes at @bytes, which stay. */
void decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t length, FILE *out);

/** Keeps what is wrong, unless there is something already. */
void decoder_fault(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints a line that says something about what follows, and that encoding passes over. */
void decoder_note(struct decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Bytes up to the end. */
static inline size_t decoder_left(const struct decoder *decoder)
{
	return decoder->end - decoder->at;
}

/**
 * Prints @part with @tail bytes behind it and passes over it; returns where it is. NULL: it is not there as a whole; then what
 * is there is printed as bytes, up to the end, and that is a fault.
 */
const uint8_t *decoder_take(struct decoder *decoder, enum part part, size_t tail);

/** Prints all up to @end as bytes. */
void decoder_rest(struct decoder *decoder, size_t end);

/** A number of @part, at @bytes. @name: one of its fields. */
uint64_t part_get(const uint8_t *bytes, enum part part, const char *name);

/** Prints @part, with @tail bytes behind it. */
void part_print(FILE *out, enum part part, const uint8_t *bytes, size_t tail);

/** Writes the decoded @text, which it overwrites, and @fault, if that is not empty, to @out as an object. */
void decoded_print_json(FILE *out, char *text, const char *fault);

/* What a WQE does not tell: what comes behind the control segment depends on it. */
enum decode_transport { DECODE_RC, DECODE_UC, DECODE_UD, DECODE_XRC, DECODE_DC };

/* What a packet begins with. ANY: Ethernet, IP, or the base transport header, told apart by what is in it. */
enum packet_begin { BEGIN_ANY, BEGIN_ETHERNET, BEGIN_IP, BEGIN_COOKED, BEGIN_COOKED_2 };

/** What packets of a capture with @link_type (enum link_type) begin with; BEGIN_ANY: it is none that is known. */
enum packet_begin packet_begin_of(uint32_t link_type);

/* What to decode. Each takes all up to the end. */
void decode_wqes(struct decoder *decoder, enum decode_transport transport);
void decode_cqes(struct decoder *decoder, uint32_t cqe_size);
void decode_mkey(struct decoder *decoder);
/** One BSF, or a signature BSF and the crypto BSF behind it. */
void decode_bsf(struct decoder *decoder);
/** From the header @begin on. */
void decode_packet(struct decoder *decoder, enum packet_begin begin);

#endif
