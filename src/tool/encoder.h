/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text as bytes, for `softhca encode`: what tool/decoder.h prints, or what somebody has written in that form. Parts become bytes
 * in the order of the text, whatever they are; a field that is left out is 0, but for `ds` of a control segment and `byte_count`
 * of inline data, which are counted then. A number may be written as a name that decoding shows.
 */
#ifndef SOFTHCA_TOOL_ENCODER_H
#define SOFTHCA_TOOL_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#define ENCODER_MOST_BYTES (1u << 20)

/**
 * Encodes @text of @length characters to @bytes, which has ENCODER_MOST_BYTES. Returns how many it made; or -1 with one line,
 * without its end, in @error: which line of the text is wrong, and how.
 */
int encode_text(const char *text, size_t length, uint8_t *bytes, char *error, size_t error_size);

#endif
