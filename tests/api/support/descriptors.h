/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of open descriptors of this process, for tests of descriptor leaks. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H
#define SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Returns true for a connection from another test on this host. That test may look up a queue pair of a process that
 * has died and has its number in a slot now of this process (src/link/host/DESIGN.md). It opens and closes the
 * connection at any time.
 */
static inline bool is_of_another_process(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid > 0 && peer.pid != getpid();
}

/*
 * Returns true for the memory of the process at the other end of a connection over shm; with SOFTHCA_LINK=shm that can
 * be this process. It is opened once per connection, if that end has not polled for a while (src/link/shm/direct.c), so
 * the scheduler decides whether and in which test that happens.
 */
static inline bool is_memory_of_a_process(int fd)
{
	char link[32], target[32] = "";
	int pid, end = 0;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, target, sizeof(target) - 1) > 0 && sscanf(target, "/proc/%d/mem%n", &pid, &end) == 1 &&
	       end && !target[end];
}

static inline int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 8192; fd++)
		count += fcntl(fd, F_GETFD) >= 0 && !is_of_another_process(fd) && !is_memory_of_a_process(fd);
	return count;
}

/* Returns true if at most @count descriptors are open now or soon: such a connection briefly opens others as well. */
static inline bool descriptors_come_back_to(int count)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < 5000 && count_descriptors() > count; i++)
		nanosleep(&moment, NULL);
	return count_descriptors() <= count;
}

#endif
