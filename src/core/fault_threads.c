/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which threads would survive a fault. Descriptors are kept (descriptor.h) even for this short time: a program that closes
 * all could otherwise open a file of its own with the same number meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/fault_signal.h"

/* A status file has 1.5 kB. */
enum { STATUS_BYTES = 4096 };

/* Returns the bytes of the NUL-terminated status, or -1 with errno. */
static ssize_t status_read(int tasks, const char *thread, char *status)
{
	char name[sizeof(((struct dirent *)NULL)->d_name) + sizeof("/status")];
	ssize_t bytes;
	int fd;

	snprintf(name, sizeof(name), "%s/status", thread);
	fd = descriptor_keep(openat(tasks, name, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return -1;
	bytes = read(fd, status, STATUS_BYTES - 1);
	descriptor_close(fd);
	status[bytes > 0 ? bytes : 0] = '\0';
	return bytes;
}

/* Returns the value of the line that begins with @key, or UINT64_MAX without one. */
static uint64_t status_value(const char *status, const char *key, int base)
{
	const char *line = strstr(status, key);

	return line ? strtoull(line + strlen(key), NULL, base) : UINT64_MAX;
}

static bool thread_takes_faults(int tasks, const char *thread)
{
	char status[STATUS_BYTES];

	/* A thread that has ended meanwhile does not fault. */
	if (status_read(tasks, thread, status) < 0)
		return errno == ENOENT || errno == ESRCH;
	return !(status_value(status, "\nSigBlk:", 16) >> (SIGSEGV - 1) & 1) &&
	       status_value(status, "\nTracerPid:", 10) == 0;
}

static bool threads_take_faults(DIR *tasks)
{
	const struct dirent *thread;

	while ((thread = readdir(tasks)))
		if (thread->d_name[0] != '.' && !thread_takes_faults(dirfd(tasks), thread->d_name))
			return false;
	return true;
}

bool fault_signal_reaches_all_threads(void)
{
	WITHOUT_CANCELLATION;
	DIR *tasks;
	bool all;
	int fd;

	if (!fault_signal_reaches_thread())
		return false;
	fd = descriptor_keep(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	tasks = fd < 0 ? NULL : fdopendir(fd);
	all = tasks && threads_take_faults(tasks);
	if (tasks)
		closedir(tasks);
	/* Removes the record, if the file is closed already. */
	descriptor_close(fd);
	return all;
}
