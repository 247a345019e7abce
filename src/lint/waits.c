/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the descriptors that a thread waits for in poll(2), epoll_wait(2) or read(2), from the arguments in
 * /proc/self/task/TID/syscall.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "lint/state.h"

enum { MOST_POLLED = 64, PROC_BYTES = 4096 };

/* A system call in which a thread sleeps. */
struct waiting_call {
	long number;
	unsigned long argument[4];
};

/* Reads the file into @text, which has PROC_BYTES. */
static bool proc_read(const char *path, char *text)
{
	WITHOUT_CANCELLATION;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, PROC_BYTES - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Returns false if @thread is running, or the kernel does not show its call. */
static bool waiting_call_read(pid_t thread, struct waiting_call *call)
{
	char path[64], text[PROC_BYTES];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
	return proc_read(path, text) && sscanf(text, "%ld %lx %lx %lx %lx", &call->number, &call->argument[0],
					       &call->argument[1], &call->argument[2], &call->argument[3]) == 5;
}

static bool poll_has(unsigned long array, unsigned long count, int fd)
{
	struct pollfd polled[MOST_POLLED];

	if (!count || count > MOST_POLLED || !lint_memory_read(array, polled, count * sizeof(polled[0])))
		return false;
	for (unsigned long i = 0; i < count; i++)
		if (polled[i].fd == fd && polled[i].events & POLLIN)
			return true;
	return false;
}

/* proc(5), /proc/pid/fdinfo: a line "tfd: 5 events: 19 …" for each descriptor. */
static bool epoll_has(unsigned long epoll, int fd)
{
	char path[64], text[PROC_BYTES];
	const char *line;
	int watched;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%lu", epoll);
	if (!proc_read(path, text))
		return false;
	for (line = strstr(text, "tfd:"); line; line = strstr(line + 1, "tfd:"))
		if (sscanf(line, "tfd: %d", &watched) == 1 && watched == fd)
			return true;
	return false;
}

bool lint_thread_waits(pid_t thread, int fd)
{
	struct waiting_call call;

	if (!waiting_call_read(thread, &call))
		return false;
	switch (call.number) {
#ifdef SYS_poll
	case SYS_poll:
		return (int)call.argument[2] < 0 && poll_has(call.argument[0], call.argument[1], fd);
#endif
	case SYS_ppoll:
		return !call.argument[2] && poll_has(call.argument[0], call.argument[1], fd);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		return (int)call.argument[3] < 0 && epoll_has(call.argument[0], fd);
	case SYS_read:
		return (int)call.argument[0] == fd;
	default:
		return false;
	}
}
