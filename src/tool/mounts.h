/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mount namespace for a program, made by a single-threaded process that becomes the program. Directories in it keep all
 * but some entries. It is invisible outside and ends with the program. Functions return 0 or a negative errno value; a
 * partial failure cannot be undone.
 */
#ifndef SOFTHCA_TOOL_MOUNTS_H
#define SOFTHCA_TOOL_MOUNTS_H

/**
 * Enters a mount namespace that follows changes of outer mounts, but not the reverse. A process without the right to do
 * so creates a user namespace first, in which user and group stay the same.
 */
int mounts_begin(void);

/** Mounts an empty directory over @path. */
int mounts_cover(const char *path);

/**
 * As mounts_cover(), and binds the old entries into it, except those in @except (NULL at its end) and those that cannot
 * be bound.
 */
int mounts_replace(const char *path, const char *const except[]);

/** Makes the empty file @path, for a bind mount. */
int mounts_make_file(const char *path);

#endif
