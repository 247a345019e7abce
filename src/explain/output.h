/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to a descriptor that may be the program's own, without blocking, because explanations are made under locks and
 * the sink may have no reader.
 *
 * A full pipe, a stopped terminal (Ctrl-S) and a socket without room accept nothing. O_NONBLOCK on the program's stderr
 * would belong to the open file description, and make writes of its parent and children fail. So output_write() has a
 * method for each kind of file.
 *
 * Writing raises no signal: SIGPIPE (no reader), SIGXFSZ (RLIMIT_FSIZE) and SIGTTOU (a background process writes to its
 * terminal) would end or stop the program. Any thread may call; no state, no lock.
 */
#ifndef SOFTHCA_EXPLAIN_OUTPUT_H
#define SOFTHCA_EXPLAIN_OUTPUT_H

#include <stddef.h>

/**
 * Opens @path for appending, without waiting for a reader of a FIFO. Returns a descriptor, or a negative errno value.
 */
int output_open(const char *path);

/**
 * Returns the bytes written, as many as there is room for, or a negative errno value: -EAGAIN without room, or an error
 * of write(2). Keeps errno; not a cancellation point. A regular file may take as long as its file system does.
 */
int output_write(int fd, const char *text, size_t length);

#endif
