/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts text to bytes, for `softhca encode`. The text is in the form that tool/decoder.h prints. Any parts are
 * accepted; their bytes are in the order of the text. A field that is omitted is 0, except `ds` of a control segment
 * and `byte_count` of inline data, which are computed. Numbers may be written as names that decoding shows.
 */
#ifndef SOFTHCA_TOOL_ENCODER_H
#define SOFTHCA_TOOL_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#define ENCODER_MOST_BYTES (1u << 20)

/**
 * Encodes @text of @length characters to @bytes, which has ENCODER_MOST_BYTES. Returns the number of bytes; or -1 with
 * a message in @error, without a newline, that names the line of the text and the fault.
 */
int encode_text(const char *text, size_t length, uint8_t *bytes, char *error, size_t error_size);

#endif
