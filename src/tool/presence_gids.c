/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second half of presence: /sys/class/infiniband/DEVICE/ports/1/gid_attrs, where UCX reads of which kind a GID is. It
 * takes all for RoCE v1 where that is missing, and then drops datagrams that came by UDP, whose GRH is another.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#include "tool/tool.h"

#define CLASS "/sys/class"

struct gid_line {
	char device[64];
	uint32_t index;
	char interface[IF_NAMESIZE];
};

static void list_gids(struct ibv_device *device, FILE *out)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	char interface[IF_NAMESIZE];

	if (!context || ibv_query_port(context, 1, &port))
		return;
	for (int i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0) &&
		    if_indextoname(entry.ndev_ifindex, interface))
			fprintf(out, "%s %d %d %s\n", ibv_get_device_name(device), i,
				entry.gid_type == IBV_GID_TYPE_ROCE_V2, interface);
}

/* In a child: a device may start a thread, and who has two cannot enter a user namespace (unshare(2)). */
static _Noreturn void list_all(int fd)
{
	FILE *out = fdopen(fd, "w");
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; out && list && list[i]; i++)
		list_gids(list[i], out);
	_exit(out && fflush(out) == 0 ? 0 : 1);
}

char *presence_gids(void)
{
	char *text = NULL;
	size_t size;
	FILE *in, *copy;
	int pipes[2], c;
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC))
		return NULL;
	child = fork();
	if (child == 0)
		list_all(pipes[1]);
	close(pipes[1]);
	in = fdopen(pipes[0], "r");
	copy = open_memstream(&text, &size);
	while (child > 0 && in && copy && (c = getc(in)) != EOF)
		putc(c, copy);
	if (in)
		fclose(in);
	if (copy)
		fclose(copy);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return text;
}

static int make_path(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

static int write_attribute(const struct gid_line *line, const char *directory, const char *text)
{
	char path[256];
	FILE *file;
	int error;

	snprintf(path, sizeof(path), CLASS "/infiniband/%s/ports/1/gid_attrs/%s/%u", line->device, directory,
		 line->index);
	error = make_path(path);
	if (error)
		return error;
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file, "%s\n", text);
	return fclose(file) ? -errno : 0;
}

int presence_write_gids(const char *gids)
{
	struct gid_line line;
	int is_v2, length, error = 0;

	for (; !error &&
	       sscanf(gids, "%63s %u %d %15s\n%n", line.device, &line.index, &is_v2, line.interface, &length) == 4;
	     gids += length) {
		error = write_attribute(&line, "types", is_v2 ? "RoCE v2" : "IB/RoCE v1");
		if (!error)
			error = write_attribute(&line, "ndevs", line.interface);
	}
	return error;
}
