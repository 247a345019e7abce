/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of other processes, from their files (observe/counter_file.h), for `softhca top`. Nobody is asked: a process that is
 * stopped has its file all the same. What a file says is a process's own word for itself: numbers are taken as they are, sizes are
 * checked, and nothing is mapped, so that a file that shrinks is a short read. Only files of memory are opened for reading, whatever
 * a descriptor becomes in the meantime.
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
	char name[16]; /* as in /proc/PID/comm, without what a terminal obeys */
	dev_t device;  /* of the file: another one is another process, or the same after execve(2) */
	ino_t inode;
	uint64_t values[KNOWN_COUNT]; /* of all devices; 0 of what that process does not know */
};

/** The processes that can be seen, by pid; at most @most. Returns how many. */
size_t counters_read(struct process_counters *processes, size_t most);

#endif
