/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the counters of other processes from their files (observe/counter_file.h), even of stopped ones. Contents are
 * untrusted: numbers are used as they are, sizes are checked, and nothing is mapped, so a file that shrinks causes a
 * short read. Only memory files are opened for reading, even if the descriptor changes meanwhile.
 */
#ifndef SOFTHCA_TOOL_COUNTERS_READ_H
#define SOFTHCA_TOOL_COUNTERS_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum known_counter {
#define COUNTER(NAME, ...) KNOWN_##NAME,
#include "observe/counters.def"
	KNOWN_COUNT
};

extern const char *const known_counter_names[KNOWN_COUNT];

struct process_counters {
	pid_t pid;
	char name[16]; /* /proc/PID/comm, without terminal control characters */
	dev_t device;  /* a change means another process, or execve(2) */
	ino_t inode;
	uint64_t values[KNOWN_COUNT]; /* sums over devices; 0 if the process lacks the counter */
};

/** Reads at most @most visible processes, by PID. Returns their number. */
size_t counters_read(struct process_counters *processes, size_t most);

#endif
