/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to a descriptor that may be the program's own, without ever blocking the program: explanations are made under locks and
 * on the path of requests, and the sink may have no reader.
 *
 * A full pipe, a stopped terminal (Ctrl-S) and a socket without room accept nothing. Setting O_NONBLOCK on the program's stderr
 * is not possible: the flag belongs to the open file description, which the program shares with its parent and its children, and
 * their own writes would fail. So output_write() uses a different method for each kind of file.
 *
 * Writing raises no signal: SIGPIPE (no reader), SIGXFSZ (RLIMIT_FSIZE) and SIGTTOU (a background process writes to its terminal)
 * would end or stop the program for something that it has not done. Any thread may call; no state, no lock.
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
 * Writes @length bytes of @text to @fd. Returns the bytes written, fewer than @length if the room is used
 * up, or a negative errno value: -EAGAIN without any room, or an error of write(2). Keeps errno; is not a
 * cancellation point. A regular file may take as long as its file system does.
 */
int output_write(int fd, const char *text, size_t length);

#endif
