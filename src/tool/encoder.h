/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts text in the form of tool/decoder.h to bytes: any parts, in the order of the text. An omitted field is 0,
 * except `ds` of a control segment and `byte_count` of inline data, which are computed. Numbers may be names that
 * decoding shows.
 */
#ifndef SOFTHCA_TOOL_ENCODER_H
#define SOFTHCA_TOOL_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#define ENCODER_MOST_BYTES (1u << 20)

/**
 * @bytes has ENCODER_MOST_BYTES. Returns the number of bytes; or -1 with line and fault in @error, without a newline.
 */
int encode_text(const char *text, size_t length, uint8_t *bytes, char *error, size_t error_size);

#endif
