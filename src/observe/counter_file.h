/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for a process's counters, as an unnamed, sealed file (memfd_create(2)), which other processes that may inspect
 * this one find in /proc/PID/fd (DESIGN.md).
 *
 * It describes its own layout, for readers of other versions: a head with the names of the counters, then rows. A row
 * belongs to a thread (core/epoch.h) and has the counters of each device, uint64_t in the order of the names. Rows are
 * never returned. The process reads only its own counters from it.
 *
 * Owned by the registry until the process ends. Made and forked by one thread; any thread may request rows.
 */
#ifndef SOFTHCA_OBSERVE_COUNTER_FILE_H
#define SOFTHCA_OBSERVE_COUNTER_FILE_H

#include <stddef.h>
#include <stdint.h>

#define COUNTER_FILE_NAME "softhca-counters"
#define COUNTER_FILE_MAGIC "softhca counters" /* without a terminating 0 */
#define COUNTER_FILE_NAME_BYTES 32

struct counter_file_head {
	char magic[16];
	uint32_t version;  /* COUNTER_FILE_VERSION */
	uint32_t counters; /* names that follow */
	uint32_t devices;
	uint32_t row_bytes; /* at least devices * counters * 8 */
	uint32_t first_row; /* offset of the rows */
	uint32_t rows;      /* atomic; rows so far */
	char names[][COUNTER_FILE_NAME_BYTES];
};

#define COUNTER_FILE_VERSION 1
#define COUNTER_FILE_ROWS 1024

struct counter_file;

/** Returns NULL if the system provides no file; then other processes do not see the counters. */
struct counter_file *counter_file_make(size_t devices);

/**
 * Returns a zeroed row for a thread, or NULL if all are used or @file is NULL. Any thread may call, with any lock held.
 */
uint64_t *counter_file_row(struct counter_file *file);

/** Moves the rows to a new file in a forked child, at the same address and all 0. @file may be NULL. */
void counter_file_after_fork(struct counter_file *file);

#endif
