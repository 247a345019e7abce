/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For `softhca info`: programs that listen, by the names of link/host/services.c, and programs with connections, by
 * their counters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/host/listing.h"
#include "link/udp/parts.h"
#include "tool/counters_read.h"
#include "tool/json.h"
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

static bool listener_parse(const char *name, unsigned int *space, unsigned int *port)
{
	return sscanf(name, PREFIX "%x/%u", space, port) == 2;
}

static bool listener_print(void *argument, const struct host_listed *listed)
{
	unsigned int space, port;
	struct udp_owner owner;

	(void)argument;
	if (!listener_parse(listed->name, &space, &port))
		return true;
	printf("  %-5s port %-5u ", space_name(space), port);
	if (udp_find_process(listed->inode, &owner))
		printf("process %d (%s)\n", (int)owner.pid, owner.name);
	else
		puts("a process that this one cannot see");
	return true;
}

#define MOST_PROCESSES 1024

static void connections_visit(void (*print)(const struct process_counters *process, uint64_t connections))
{
	struct process_counters *processes = calloc(MOST_PROCESSES, sizeof(*processes));
	size_t count = processes ? counters_read(processes, MOST_PROCESSES) : 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t made = processes[i].values[KNOWN_CM_ESTABLISHED],
			 ended = processes[i].values[KNOWN_CM_RELEASED];

		if (made > ended)
			print(&processes[i], made - ended);
	}
	free(processes);
}

static void connections_print(const struct process_counters *process, uint64_t connections)
{
	printf("  %-12" PRIu64 " process %d (%s)\n", connections, (int)process->pid, process->name);
}

void listeners_print(void)
{
	puts("listeners");
	host_names_list(PREFIX, listener_print, NULL);
	puts("connections of rdma_cm");
	connections_visit(connections_print);
}

static const char *listener_separator;

static bool listener_print_json(void *argument, const struct host_listed *listed)
{
	unsigned int space, port;
	struct udp_owner owner;

	(void)argument;
	if (!listener_parse(listed->name, &space, &port))
		return true;
	printf("%s{\"port_space\": \"%s\", \"port\": %u", listener_separator, space_name(space), port);
	listener_separator = ",\n  ";
	if (udp_find_process(listed->inode, &owner)) {
		printf(", \"pid\": %d", (int)owner.pid);
		json_put_member(stdout, ", ", "program", owner.name);
	}
	putchar('}');
	return true;
}

static void connections_print_json(const struct process_counters *process, uint64_t connections)
{
	printf("%s{\"connections\": %" PRIu64 ", \"pid\": %d", listener_separator, connections, (int)process->pid);
	json_put_member(stdout, ", ", "program", process->name);
	putchar('}');
	listener_separator = ",\n  ";
}

void listeners_print_json(void)
{
	fputs(",\n \"listeners\": [", stdout);
	listener_separator = "\n  ";
	host_names_list(PREFIX, listener_print_json, NULL);
	fputs("],\n \"connections\": [", stdout);
	listener_separator = "\n  ";
	connections_visit(connections_print_json);
	putchar(']');
}
