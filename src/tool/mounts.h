/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mount namespace for a program, made by a process of one thread that will become it: directories in it are as they were,
 * but for some entries. Nothing of it is seen outside, and it is gone with the program. Functions return 0 or a negative
 * errno value; what fails half-way cannot be undone.
 */
#ifndef SOFTHCA_TOOL_MOUNTS_H
#define SOFTHCA_TOOL_MOUNTS_H

/**
 * Enters a mount namespace, in which what happens to mounts outside is seen, not the other way round. A process that may not
 * make one makes a user namespace around it, in which user and group stay what they are.
 */
int mounts_begin(void);

/** Mounts an empty directory over @path. */
int mounts_cover(const char *path);

/** The same, and binds what was there into it, but for the entries in @except (NULL at its end), and what cannot be bound. */
int mounts_replace(const char *path, const char *const except[]);

/** Makes the empty file @path, for a bind mount. */
int mounts_make_file(const char *path);

#endif
