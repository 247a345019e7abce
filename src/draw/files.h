/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of drawings. Any thread; no lock; no cancellation point, and no signal comes of it. */
#ifndef SOFTHCA_DRAW_FILES_H
#define SOFTHCA_DRAW_FILES_H

#include <stddef.h>

/** Makes @directory if it is not there, and its full path, for a program that changes its own. Returns 0 or a negative errno. */
int drawing_directory(const char *directory, char *path, size_t size);

/**
 * Puts @length bytes of @text in the place of the file @name in @directory, all of them or none. Returns 0 or a negative
 * errno.
 */
int drawing_store(const char *directory, const char *name, const char *text, size_t length);

/** Writes all of @text to @fd, which is the program's. Returns 0 or a negative errno. */
int drawing_write(int fd, const char *text, size_t length);

#endif
