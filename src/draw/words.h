/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats words and figures into arrays; truncates texts that do not fit. */
#ifndef SOFTHCA_DRAW_WORDS_H
#define SOFTHCA_DRAW_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** Formats into the array @out, like snprintf(3). */
#define SAY(out, ...) ((void)words_put(out, sizeof(out), __VA_ARGS__))
/** Appends to the text in @out. */
#define SAY_MORE(out, ...) ((void)words_append(out, sizeof(out), __VA_ARGS__))

void words_put(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
void words_append(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct figure {
	char text[32];
};

/** 1234567: "1,234,567". */
struct figure words_commas(uint64_t value);

struct rights_text {
	char text[96];
};

/** @rights: enum key_rights. Returns "local read, local write". */
struct rights_text rights_text(uint8_t rights);

#define COMMAS(value) (words_commas(value).text)
#define RIGHTS(rights) (rights_text(rights).text)

#endif
