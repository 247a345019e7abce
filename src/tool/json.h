/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON (RFC 8259). Any thread; the caller owns the stream. */
#ifndef SOFTHCA_TOOL_JSON_H
#define SOFTHCA_TOOL_JSON_H

#include <stdio.h>

/** Writes a string with quotes. Bytes above 127 are unchanged: UTF-8 if @text is. */
void json_put_string(FILE *out, const char *text);

/** Writes @separator before the member. */
void json_put_member(FILE *out, const char *separator, const char *name, const char *text);

#endif
