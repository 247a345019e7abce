/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes files of drawings. */
#include "draw/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/file_size.h"

int drawing_directory(const char *directory, char *path, size_t size)
{
	WITHOUT_CANCELLATION;
	char itself[PATH_MAX], *full;
	int error = 0;

	if (snprintf(itself, sizeof(itself), "%s/.", directory) >= (int)sizeof(itself))
		return -ENAMETOOLONG;
	if (mkdir(directory, 0777) && errno != EEXIST)
		return -errno;
	full = realpath(itself, NULL);
	if (!full)
		return -errno;
	if (strlen(full) >= size)
		error = -ENAMETOOLONG;
	else
		strcpy(path, full);
	free(full);
	if (!error && access(path, W_OK | X_OK))
		error = -errno;
	return error;
}

int drawing_write(int fd, const char *text, size_t length)
{
	WITHOUT_CANCELLATION;
	WITHOUT_SIZE_SIGNAL;

	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -ENOSPC;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

int drawing_store(const char *directory, const char *name, const char *text, size_t length)
{
	WITHOUT_CANCELLATION;
	static uint32_t next; /* atomic: two threads may draw the same key */
	char place[PATH_MAX], beside[PATH_MAX];
	int fd, error;

	if (snprintf(place, sizeof(place), "%s/%s", directory, name) >= (int)sizeof(place) ||
	    snprintf(beside, sizeof(beside), "%s/.%d-%u", directory, (int)getpid(),
		     __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	error = drawing_write(fd, text, length);
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(beside, place))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}
