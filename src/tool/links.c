/* SPDX-License-Identifier: BSD-2-Clause */
/* What the links of a device find on this machine: tried, not guessed; for `softhca info`. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/udp/parts.h"
#include "tool/probes.h"
#include "tool/tool.h"

/* ---- shm -------------------------------------------------------------------------------------------------------- */

static void print_shm(void)
{
	int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
	    memory_fd = memfd_create("softhca", MFD_CLOEXEC);
	int yama = system_setting("/proc/sys/kernel/yama/ptrace_scope"), error;

	if (socket_fd < 0 || memory_fd < 0) {
		printf("  shm    not available: %s(2): %m\n", socket_fd < 0 ? "socket" : "memfd_create");
	} else {
		error = probe_memory_of_others();
		printf("  shm    processes of this host; large payload through the ring");
		if (!error)
			printf(", or read from the sender's memory\n");
		else if (yama > 0)
			printf("; reading the sender's memory: %s (kernel.yama.ptrace_scope is %d)\n", strerror(error),
			       yama);
		else
			printf("; reading the sender's memory: %s\n", strerror(error));
	}
	if (socket_fd >= 0)
		close(socket_fd);
	if (memory_fd >= 0)
		close(memory_fd);
}

/* ---- udp -------------------------------------------------------------------------------------------------------- */

static void print_owner(uint16_t port)
{
	struct udp_owner owner;

	if (udp_find_receiver(port, &owner))
		printf("process %d (%s) receives for this host", (int)owner.pid, owner.name);
	else if (!udp_find_owner(port, &owner))
		printf("taken by a program that this one cannot see");
	else
		printf("taken by process %d (%s): nothing arrives from other hosts", (int)owner.pid, owner.name);
}

static void print_udp(uint16_t port)
{
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htobe16(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		printf("  udp    not available: socket(2): %m\n");
		return;
	}
	printf("  udp    other hosts, RoCEv2; port %u: ", port);
	if (!bind(fd, (const struct sockaddr *)&name, sizeof(name)))
		printf("free");
	else if (errno == EADDRINUSE)
		print_owner(port);
	else
		printf("%m");
	printf("; %s\n", probe_trains(fd));
	close(fd);
}

void links_print(const struct settings *settings)
{
	puts("links");
	puts("  local  queue pairs of one process");
	print_shm();
	print_udp((uint16_t)settings->roce_port);
}

void counters_print(void)
{
	puts("counters");
#define COUNTER(NAME, name, doc) printf("  %-24s %s\n", name, doc);
#include "observe/counters.def"
}
