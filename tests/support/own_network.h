/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace for a test: packets, ports and names of other tests do not reach it. */
#ifndef SOFTHCA_TESTS_OWN_NETWORK_H
#define SOFTHCA_TESTS_OWN_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/**
 * Moves the process, which must have a single thread, into a new network namespace, whose lo is up. Returns false, with
 * errno, if that is not permitted.
 */
static inline bool own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};
	int fd;
	bool up;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo);
	if (fd >= 0)
		close(fd);
	return up;
}

#endif
