/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of drawings. Any thread; no lock. Functions are not cancellation points and do not raise signals. */
#ifndef SOFTHCA_DRAW_FILES_H
#define SOFTHCA_DRAW_FILES_H

#include <stddef.h>

/**
 * Creates @directory if needed, and stores its full path, as the working directory may change. Returns 0 or a negative
 * errno.
 */
int drawing_directory(const char *directory, char *path, size_t size);

/** Replaces the file @name in @directory, completely or not at all. Returns 0 or a negative errno. */
int drawing_store(const char *directory, const char *name, const char *text, size_t length);

/** Writes @text to @fd, a descriptor of the program. Returns 0 or a negative errno. */
int drawing_write(int fd, const char *text, size_t length);

#endif
