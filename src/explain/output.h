/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing to a descriptor that may be the program's own, without ever holding the program up: explanations are made under
 * locks and on the path of requests, and nobody may read what they are written to.
 *
 * A pipe that is full, a terminal that was stopped (Ctrl-S) and a socket without room take nothing. Setting O_NONBLOCK on
 * the program's stderr is no way out: the flag belongs to the open file description, which the program, its parent and its
 * children share, and whose own writes would begin to fail. So each kind is written to in its own way (output_write()).
 *
 * No signal comes of it: SIGPIPE (nobody will read), SIGXFSZ (RLIMIT_FSIZE) and SIGTTOU (a terminal whose foreground is
 * somebody else's) would end or stop the program for something that it has not done. Any thread may call; no state, no lock.
 */
#ifndef SOFTHCA_EXPLAIN_OUTPUT_H
#define SOFTHCA_EXPLAIN_OUTPUT_H

#include <stddef.h>

/**
 * Opens the file at @path for appending, to be written to with output_write(); it does not wait for a reader of a FIFO.
 * Returns a descriptor, or a negative errno value.
 */
int output_open(const char *path);

/**
 * Writes @length bytes of @text to @fd. Returns how many were written, which are fewer than asked for if there is no more
 * room, or a negative errno value: -EAGAIN if there is no room at all, those of write(2). Leaves errno as it is; is no
 * cancellation point. A regular file may take as long as its file system does.
 */
int output_write(int fd, const char *text, size_t length);

#endif
