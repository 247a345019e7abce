/* SPDX-License-Identifier: BSD-2-Clause */
/* How many descriptors this process has open, for tests of what leaves none behind. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H
#define SOFTHCA_TESTS_API_SUPPORT_DESCRIPTORS_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Another test on this host may ask for a queue pair that it takes for one of a process that has died, and whose number is in a
 * slot of this process now (docs/architecture.md, names on a host). The connection comes and goes as that process likes.
 */
static inline bool is_of_another_process(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid > 0 && peer.pid != getpid();
}

static inline int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0 && !is_of_another_process(fd);
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
