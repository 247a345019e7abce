/* SPDX-License-Identifier: BSD-2-Clause */
/* Usable links, found by probing; for `softhca info`. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/udp/parts.h"
#include "tool/json.h"
#include "tool/probes.h"
#include "tool/tool.h"

/* ---- shm -------------------------------------------------------------------------------------------------------- */

static void shm_describe(FILE *out)
{
	int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
	    memory_fd = memfd_create("softhca", MFD_CLOEXEC);
	int yama = system_setting("/proc/sys/kernel/yama/ptrace_scope"), error;

	if (socket_fd < 0 || memory_fd < 0) {
		fprintf(out, "not available: %s(2): %m", socket_fd < 0 ? "socket" : "memfd_create");
	} else {
		error = probe_memory_of_others();
		fprintf(out, "processes of this host; large payload through the ring");
		if (!error)
			fprintf(out, ", or read from the sender's memory");
		else if (yama > 0)
			fprintf(out, "; reading the sender's memory: %s (kernel.yama.ptrace_scope is %d)",
				strerror(error), yama);
		else
			fprintf(out, "; reading the sender's memory: %s", strerror(error));
	}
	if (socket_fd >= 0)
		close(socket_fd);
	if (memory_fd >= 0)
		close(memory_fd);
}

/* ---- udp -------------------------------------------------------------------------------------------------------- */

static void owner_describe(FILE *out, uint16_t port)
{
	struct udp_owner owner;

	if (udp_find_receiver(port, &owner))
		fprintf(out, "process %d (%s) receives for this host", (int)owner.pid, owner.name);
	else if (!udp_find_owner(port, &owner))
		fprintf(out, "taken by a process that this one cannot see");
	else
		fprintf(out, "taken by process %d (%s): nothing arrives from other hosts", (int)owner.pid, owner.name);
}

static void udp_describe(FILE *out, uint16_t port)
{
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htobe16(port)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		fprintf(out, "not available: socket(2): %m");
		return;
	}
	fprintf(out, "other hosts, RoCEv2; port %u: ", port);
	if (!bind(fd, (const struct sockaddr *)&name, sizeof(name)))
		fprintf(out, "free");
	else if (errno == EADDRINUSE)
		owner_describe(out, port);
	else
		fprintf(out, "%m");
	fprintf(out, "; %s", probe_trains(fd));
	close(fd);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static const char *const link_names[] = {"local", "shm", "udp"};

enum { LINKS = sizeof(link_names) / sizeof(link_names[0]) };

/* The caller frees the text. */
static char *link_description(int number, const struct settings *settings)
{
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		tool_fail(EXIT_FAILURE, "out of memory");
	if (number == 0)
		fputs("queue pairs of one process", out);
	else if (number == 1)
		shm_describe(out);
	else
		udp_describe(out, (uint16_t)settings->roce_port);
	/* cppcheck-suppress nullPointerRedundantCheck */
	if (fclose(out))
		tool_fail(EXIT_FAILURE, "out of memory");
	return text;
}

void links_print(const struct settings *settings)
{
	puts("links");
	for (int i = 0; i < LINKS; i++) {
		char *text = link_description(i, settings);

		printf("  %-6s %s\n", link_names[i], text);
		free(text);
	}
}

void links_print_json(const struct settings *settings)
{
	fputs(",\n \"links\": {", stdout);
	for (int i = 0; i < LINKS; i++) {
		char *text = link_description(i, settings);

		json_put_member(stdout, i ? ",\n  " : "\n  ", link_names[i], text);
		free(text);
	}
	putchar('}');
}

void counters_print(void)
{
	puts("counters");
#define COUNTER(NAME, name, doc) printf("  %-24s %s\n", name, doc);
#include "observe/counters.def"
}

void counters_print_json(void)
{
	const char *separator = ",\n \"counters\": {\n  ";

#define COUNTER(NAME, name, doc)                                                                                       \
	json_put_member(stdout, separator, name, doc);                                                                 \
	separator = ",\n  ";
#include "observe/counters.def"
	putchar('}');
}
