/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a picture as text. The buffer grows up to LIMIT_DRAWING_BYTES; the owner of a struct drawing frees `bytes`. */
#ifndef SOFTHCA_DRAW_TEXT_H
#define SOFTHCA_DRAW_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "draw/picture.h"

struct drawing {
	char *bytes; /* NULL while empty */
	size_t length, size;
	bool failed; /* no memory, or the limit was reached */
};

/** As printf(3). */
void drawing_add(struct drawing *drawing, const char *format, ...) __attribute__((format(printf, 2, 3)));

void picture_write_text(const struct picture *picture, struct drawing *drawing);

/** Returns the characters of @text, which is UTF-8. */
size_t words_columns(const char *text);

#endif
