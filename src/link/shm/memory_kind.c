/* SPDX-License-Identifier: BSD-2-Clause */
/* See memory_kind.h. */
#include "link/shm/memory_kind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of /proc/PID/maps (proc(5)). */
struct range {
	uint64_t start, end;
	char rights[5];
	uint32_t major, minor;
	uint64_t inode;
	const char *path;
};

static bool path_begins_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

static bool range_parse(const char *line, struct range *range)
{
	int length = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &range->start, &range->end,
		   range->rights, &range->major, &range->minor, &range->inode, &length) != 6)
		return false;
	range->path = line + length;
	return true;
}

/*
 * Returns true for files of the kernel's own mounts, which no mount table lists: memfd_create(2), shmget(2), mmap(2)
 * with MAP_SHARED or MAP_HUGETLB.
 */
static bool path_is_nameless_file(const char *path)
{
	return path_begins_with(path, "/memfd:") || path_begins_with(path, "/SYSV") ||
	       path_begins_with(path, "/dev/zero (deleted)") || path_begins_with(path, "/anon_hugepage");
}

/* Returns true if @line of mountinfo is for this device and a file system in memory. */
static bool mount_is_in_memory(const char *line, uint32_t major, uint32_t minor)
{
	const char *type = strstr(line, " - ");
	uint32_t its_major, its_minor;

	if (!type || sscanf(line, "%*d %*d %u:%u", &its_major, &its_minor) != 2 || its_major != major ||
	    its_minor != minor)
		return false;
	type += 3;
	return path_begins_with(type, "tmpfs ") || path_begins_with(type, "hugetlbfs ") ||
	       path_begins_with(type, "ramfs ") || path_begins_with(type, "devtmpfs ");
}

static bool device_is_in_memory(uint32_t major, uint32_t minor)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	while (file && !found && getline(&line, &size, file) > 0)
		found = mount_is_in_memory(line, major, minor);
	free(line);
	if (file)
		fclose(file);
	return found;
}

static bool range_is_local(const struct range *range, bool written)
{
	if (!range->inode || path_is_nameless_file(range->path))
		return true;
	if (written && range->rights[1] == 'w' && range->rights[3] == 'p')
		return true;
	return device_is_in_memory(range->major, range->minor);
}

bool memory_kind_is_local(uint64_t start, uint64_t length, bool written)
{
	FILE *file = fopen("/proc/self/maps", "re");
	uint64_t end = start + length;
	struct range range;
	bool local = true;
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return false;
	/* The lines are sorted; @start moves to the end of the memory found to be local. */
	while (local && start < end && getline(&line, &size, file) > 0) {
		if (!range_parse(line, &range) || range.end <= start)
			continue;
		local = range.start <= start && range_is_local(&range, written);
		start = range.end;
	}
	free(line);
	fclose(file);
	return local && start >= end;
}
