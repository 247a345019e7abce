/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mount namespace of a single-threaded process that becomes a program, with which it ends. Functions return 0 or a
 * negative errno value; a partial failure cannot be undone.
 */
#ifndef SOFTHCA_TOOL_MOUNTS_H
#define SOFTHCA_TOOL_MOUNTS_H

/**
 * Enters a mount namespace that follows changes outside, but not the reverse; without the right to do so, in a user
 * namespace that keeps user and group.
 */
int mounts_begin(void);

/** Mounts an empty directory over @path. */
int mounts_cover(const char *path);

/**
 * As mounts_cover(), then binds the old entries, except those in @except (ends with NULL) and those that cannot be
 * bound.
 */
int mounts_replace(const char *path, const char *const except[]);

/** Makes the empty file @path, for a bind mount. */
int mounts_make_file(const char *path);

#endif
