/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and reads files of counters, see counters_read.h. */
#include "tool/counters_read.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/counter_file.h"

#define TARGET "/memfd:" COUNTER_FILE_NAME " (deleted)"
/* More than any real file has, but few enough to read a malformed file quickly. */
#define MOST_COUNTERS 512u
#define MOST_DEVICES 32u

#define COUNTER(NAME, name, doc) _Static_assert(sizeof(name) <= COUNTER_FILE_NAME_BYTES, "the file has the whole name");
#include "observe/counters.def"
_Static_assert(KNOWN_COUNT <= MOST_COUNTERS, "all of them are read");

const char *const known_counter_names[KNOWN_COUNT] = {
#define COUNTER(NAME, name, doc) [KNOWN_##NAME] = (name),
#include "observe/counters.def"
};

/* ---- a file ------------------------------------------------------------------------------------------------------ */

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Fills in the row of each known counter, or MOST_COUNTERS. */
static bool read_names(int fd, const struct counter_file_head *head, uint32_t places[KNOWN_COUNT])
{
	char(*names)[COUNTER_FILE_NAME_BYTES] = calloc(head->counters, COUNTER_FILE_NAME_BYTES);
	bool good = names && read_at(fd, names, (size_t)head->counters * COUNTER_FILE_NAME_BYTES, sizeof(*head));

	for (uint32_t known = 0; known < KNOWN_COUNT; known++) {
		places[known] = MOST_COUNTERS;
		for (uint32_t i = 0; good && i < head->counters; i++)
			if (!strncmp(names[i], known_counter_names[known], COUNTER_FILE_NAME_BYTES))
				places[known] = i;
	}
	free(names);
	return good;
}

/* Adds up the rows of threads and devices. */
static bool read_rows(int fd, const struct counter_file_head *head, const uint32_t places[KNOWN_COUNT],
		      uint64_t values[KNOWN_COUNT])
{
	uint64_t *row = malloc(head->row_bytes);
	bool good = row;

	for (uint32_t r = 0; good && r < head->rows; r++) {
		good = read_at(fd, row, head->row_bytes, head->first_row + (uint64_t)r * head->row_bytes);
		for (uint32_t d = 0; good && d < head->devices; d++)
			for (uint32_t known = 0; known < KNOWN_COUNT; known++)
				if (places[known] < head->counters)
					values[known] += row[d * head->counters + places[known]];
	}
	free(row);
	return good;
}

static bool counter_file_read(int fd, struct process_counters *process)
{
	uint32_t places[KNOWN_COUNT];
	struct counter_file_head head;

	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.magic, COUNTER_FILE_MAGIC, sizeof(head.magic)) != 0 ||
	    head.version != COUNTER_FILE_VERSION || head.counters > MOST_COUNTERS || head.devices > MOST_DEVICES ||
	    head.rows > COUNTER_FILE_ROWS || head.row_bytes < head.devices * head.counters * sizeof(uint64_t) ||
	    head.row_bytes > 2 * MOST_DEVICES * MOST_COUNTERS * sizeof(uint64_t))
		return false;
	return read_names(fd, &head, places) && read_rows(fd, &head, places, process->values);
}

/* ---- a process --------------------------------------------------------------------------------------------------- */

static bool links_to_counters(int directory, const char *name)
{
	char target[sizeof(TARGET) + 1];
	ssize_t length = readlinkat(directory, name, target, sizeof(target));

	return length == sizeof(TARGET) - 1 && !memcmp(target, TARGET, sizeof(TARGET) - 1);
}

/*
 * Pins the file (O_PATH), checks and then opens it: a descriptor may be replaced between two system calls, and opening
 * some files blocks or has side effects.
 */
static int open_pinned(int directory, const char *name)
{
	int pinned = openat(directory, name, O_PATH | O_CLOEXEC), fd = -1;
	char path[64], number[16];
	int own;

	if (pinned < 0)
		return -1;
	own = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(number, sizeof(number), "%d", pinned);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pinned);
	if (own >= 0 && links_to_counters(own, number))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (own >= 0)
		close(own);
	close(pinned);
	return fd;
}

static void counter_name_read(struct process_counters *process)
{
	char path[64];
	ssize_t length = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, process->name, sizeof(process->name) - 1);
		close(fd);
	}
	process->name[length > 0 ? length : 0] = '\0';
	process->name[strcspn(process->name, "\n")] = '\0';
	for (char *at = process->name; *at; at++)
		if (!isascii((unsigned char)*at) || !isprint((unsigned char)*at))
			*at = '?';
}

/* A forked child that the library does not notice has the file of its parent. */
static bool counter_is_known(const struct process_counters *processes, size_t count, const struct stat *status)
{
	for (size_t i = 0; i < count; i++)
		if (processes[i].device == status->st_dev && processes[i].inode == status->st_ino)
			return true;
	return false;
}

/* Reads the first file of counters that does not belong to another process. */
static bool read_process(pid_t pid, struct process_counters *processes, size_t count)
{
	struct process_counters *process = &processes[count];
	const struct dirent *entry;
	struct stat status;
	bool found = false;
	char path[64];
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && !found && (entry = readdir(directory))) {
		int fd = links_to_counters(dirfd(directory), entry->d_name)
				 ? open_pinned(dirfd(directory), entry->d_name)
				 : -1;

		if (fd < 0)
			continue;
		if (!fstat(fd, &status) && S_ISREG(status.st_mode) && !counter_is_known(processes, count, &status)) {
			*process =
				(struct process_counters){.pid = pid, .device = status.st_dev, .inode = status.st_ino};
			found = counter_file_read(fd, process);
		}
		close(fd);
	}
	if (directory)
		closedir(directory);
	if (found)
		counter_name_read(process);
	return found;
}

size_t counters_read(struct process_counters *processes, size_t most)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	size_t count = 0;

	/* /proc is in the order of PIDs. */
	while (directory && count < most && (entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process((pid_t)strtol(entry->d_name, NULL, 10), processes, count))
			count++;
	if (directory)
		closedir(directory);
	return count;
}
