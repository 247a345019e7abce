/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for a process's counters, as an unnamed file (memfd_create(2)). Another process that may inspect this one
 * (ptrace(2), PTRACE_MODE_READ: of the same user, or of root) finds the file in /proc/PID/fd and reads it, as `softhca
 * top` does. The process itself needs no thread or socket for this, and counting costs no more than in other memory.
 * The file is sealed: other processes can neither write nor shrink it.
 *
 * The descriptor exists only for other processes. If a program closes all descriptors that it did not open, counting
 * continues, but other processes cannot read the counters. If the program reuses the number, its file is left alone.
 *
 * The file describes its own layout, for readers of other versions: a head with the names of the counters, then rows. A
 * row belongs to a thread (core/epoch.h) and has the counters of each device, uint64_t in the order of the names. Rows
 * are never returned. The process reads only its own counters from the file.
 *
 * Owned by the registry until the process ends. Made and forked by one thread; any thread may request rows.
 */
#ifndef SOFTHCA_OBSERVE_COUNTER_FILE_H
#define SOFTHCA_OBSERVE_COUNTER_FILE_H

#include <stddef.h>
#include <stdint.h>

#define COUNTER_FILE_NAME "softhca-counters"
#define COUNTER_FILE_MAGIC "softhca counters" /* 16 characters without a terminating 0 */
#define COUNTER_FILE_NAME_BYTES 32

struct counter_file_head {
	char magic[16];
	uint32_t version;  /* COUNTER_FILE_VERSION */
	uint32_t counters; /* number of names that follow */
	uint32_t devices;
	uint32_t row_bytes; /* at least devices * counters * 8 */
	uint32_t first_row; /* offset of the rows */
	uint32_t rows;      /* atomic; number of rows so far */
	char names[][COUNTER_FILE_NAME_BYTES];
};

#define COUNTER_FILE_VERSION 1
#define COUNTER_FILE_ROWS 1024

struct counter_file;

/**
 * Makes a file for @devices. Returns NULL if the system provides none; then other processes do not see the counters.
 */
struct counter_file *counter_file_make(size_t devices);

/**
 * Returns a zeroed row for a thread, or NULL if all are used or @file is NULL. Any thread may call, with any lock held.
 */
uint64_t *counter_file_row(struct counter_file *file);

/** Moves the rows to a new file in a forked child, at the same address and all 0. @file may be NULL. */
void counter_file_after_fork(struct counter_file *file);

#endif
