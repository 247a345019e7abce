/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A picture as text or as SVG, and the memory that it is written to: a string that grows, up to LIMIT_DRAWING_BYTES, and then
 * notes that it was cut. Whoever has one frees `bytes`.
 */
#ifndef SOFTHCA_DRAW_TEXT_H
#define SOFTHCA_DRAW_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "draw/picture.h"

struct drawing {
	char *bytes; /* NULL: there is nothing yet */
	size_t length, size;
	bool failed; /* for want of memory, or of room */
};

/** Appends as printf(3) does. */
void drawing_add(struct drawing *drawing, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Writes @picture as text: lines that need no colours. */
void picture_write_text(const struct picture *picture, struct drawing *drawing);

/** Characters of @text, which is UTF-8, as columns. */
size_t words_columns(const char *text);

#endif
