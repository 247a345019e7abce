/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory in which a process counts, as a file (memfd_create(2)) that nobody has a name for. Another process that may look
 * at this one at all (ptrace(2), PTRACE_MODE_READ: of the same user, or of root) finds it in /proc/PID/fd and reads it, as
 * `softhca top` does. So the process is asked for nothing, has no thread or socket for it, and pays nothing: adding to this memory is adding to
 * memory. Others can neither write the file nor make it shorter: it is sealed.
 *
 * The descriptor is there for others alone. A program that closes all that it did not open counts on, unseen; one that opens a file
 * of its own as that number keeps it.
 *
 * The file says itself what is in it, so that it can be read by a program of another version: a head with the names of the
 * counters, then rows. A row belongs to a thread (core/epoch.h) and has the counters of each device, uint64_t in the order of
 * the names. Rows are never given back. The process trusts nothing that it reads there: it reads its own counters only.
 *
 * Owned by the registry, for ever. Made and forked by one thread; rows are given out to any.
 */
#ifndef SOFTHCA_OBSERVE_COUNTER_FILE_H
#define SOFTHCA_OBSERVE_COUNTER_FILE_H

#include <stddef.h>
#include <stdint.h>

#define COUNTER_FILE_NAME "softhca-counters"
#define COUNTER_FILE_MAGIC "softhca counters" /* 16 characters, no 0 behind them */
#define COUNTER_FILE_NAME_BYTES 32

struct counter_file_head {
	char magic[16];
	uint32_t version;  /* COUNTER_FILE_VERSION */
	uint32_t counters; /* names that follow */
	uint32_t devices;
	uint32_t row_bytes; /* at least devices * counters * 8 */
	uint32_t first_row; /* where the rows begin */
	uint32_t rows;      /* atomic; how many there are so far */
	char names[][COUNTER_FILE_NAME_BYTES];
};

#define COUNTER_FILE_VERSION 1
#define COUNTER_FILE_ROWS 1024

struct counter_file;

/** A file for @devices, or NULL: the system gives none, then nobody sees what is counted. */
struct counter_file *counter_file_make(size_t devices);

/** A row of its own for a thread, all 0, or NULL: all are taken, or @file is NULL. Any thread, any lock. */
uint64_t *counter_file_row(struct counter_file *file);

/** In a forked child: the rows stay where they are, all 0, in a file of its own. @file may be NULL. */
void counter_file_after_fork(struct counter_file *file);

#endif
