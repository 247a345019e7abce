/* SPDX-License-Identifier: BSD-2-Clause */
/* See listing.h. */
#include "link/host/listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LISTENS (1u << 16) /* __SO_ACCEPTCON of linux/net.h */

/*
 * Parses a line such as "0000000000000000: 00000002 00000000 00010000 0005 01 31337 @softhca/1/slot/7" (proc(5)).
 * Returns false if it is not a listening abstract socket.
 */
static bool unix_line_parse(const char *line, struct host_listed *listed)
{
	unsigned int flags;

	return sscanf(line, "%*s %*x %*x %x %*x %*x %" SCNu64 " @%107s", &flags, &listed->inode, listed->name) == 3 &&
	       flags & LISTENS;
}

int host_names_list(const char *prefix, bool (*visit)(void *argument, const struct host_listed *listed), void *argument)
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct host_listed listed;
	char line[256];

	if (!file)
		return -errno;
	/* The sockets of accepted connections have the listener's name, but do not listen. */
	while (fgets(line, sizeof(line), file))
		if (unix_line_parse(line, &listed) && !strncmp(listed.name, prefix, strlen(prefix)) &&
		    !visit(argument, &listed))
			break;
	fclose(file);
	return 0;
}
