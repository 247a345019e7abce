/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing JSON (RFC 8259). Any thread; the caller owns the stream. */
#ifndef SOFTHCA_TOOL_JSON_H
#define SOFTHCA_TOOL_JSON_H

#include <stdio.h>

/** Writes @text to @out as a JSON string with quotes. Bytes above 127 are unchanged: they are UTF-8 if @text is. */
void json_put_string(FILE *out, const char *text);

/** Writes @separator and the member @name with the string @text. */
void json_put_member(FILE *out, const char *separator, const char *name, const char *text);

#endif
