/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs that listen for connections on this host, for `softhca info`: the names of link/host/services.c; and those that have
 * connections, by their counters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/host/listing.h"
#include "link/udp/parts.h"
#include "tool/counters_read.h"
#include "tool/tool.h"

#define PREFIX "softhca/1/cm/"

/* enum rdma_port_space of rdma_cma.h. */
static const char *space_name(unsigned int space)
{
	switch (space) {
	case 0x0106:
		return "TCP";
	case 0x0111:
		return "UDP";
	case 0x013f:
		return "IB";
	default:
		return "other";
	}
}

static bool print_listener(void *argument, const struct host_listed *listed)
{
	unsigned int space, port;
	struct udp_owner owner;

	(void)argument;
	if (sscanf(listed->name, PREFIX "%x/%u", &space, &port) != 2)
		return true;
	printf("  %-5s port %-5u ", space_name(space), port);
	if (udp_find_process(listed->inode, &owner))
		printf("process %d (%s)\n", (int)owner.pid, owner.name);
	else
		puts("a process that this one cannot see");
	return true;
}

#define MOST_PROCESSES 1024

static void print_connections(void)
{
	struct process_counters *processes = calloc(MOST_PROCESSES, sizeof(*processes));
	size_t count = processes ? counters_read(processes, MOST_PROCESSES) : 0;

	puts("connections of rdma_cm");
	for (size_t i = 0; i < count; i++) {
		uint64_t made = processes[i].values[KNOWN_CM_ESTABLISHED],
			 ended = processes[i].values[KNOWN_CM_RELEASED];

		if (made > ended)
			printf("  %-12" PRIu64 " process %d (%s)\n", made - ended, (int)processes[i].pid,
			       processes[i].name);
	}
	free(processes);
}

void listeners_print(void)
{
	puts("listeners");
	host_names_list(PREFIX, print_listener, NULL);
	print_connections();
}
