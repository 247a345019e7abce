/* SPDX-License-Identifier: BSD-2-Clause */
/* How many descriptors this process has open, for tests of what leaves none behind. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H
#define SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Another test on this host may ask for a queue pair that it takes for one of a process that has died, and whose number is in a
 * slot of this process now (src/link/host/DESIGN.md). The connection comes and goes as that process likes.
 */
static inline bool is_of_another_process(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid > 0 && peer.pid != getpid();
}

/*
 * The memory of the process at the other end of a connection over shm, this one's own with SOFTHCA_LINK=shm. It is opened once for a
 * connection, when that end has not come to look for a while (src/link/shm/direct.c): whether, and in which test, is up to the scheduler.
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

/* True if there are no more than @count, or soon: what comes with such a connection is open for a moment as well. */
static inline bool descriptors_come_back_to(int count)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (int i = 0; i < 5000 && count_descriptors() > count; i++)
		nanosleep(&moment, NULL);
	return count_descriptors() <= count;
}

#endif
