/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading sysfs for programs that do so through the library (librdmacm, ibv_devinfo, Open MPI). The files
 * are real: nothing of this device stands in them, what it has to say comes from memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"

/*
 * The symbol takes no context and its answer must stay valid for ever, hence static storage. Set once, by
 * path_init.
 */
static char sysfs_path[257] = "/sys";
static pthread_once_t path_once = PTHREAD_ONCE_INIT;

static void path_init(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t length;

	if (!path)
		return;
	length = strnlen(path, sizeof(sysfs_path) - 1);
	while (length > 0 && path[length - 1] == '/')
		length--;
	memcpy(sysfs_path, path, length);
	sysfs_path[length] = '\0';
}

const char *softhca_ibv_get_sysfs_path(void)
{
	pthread_once(&path_once, path_init);
	return sysfs_path;
}

int softhca_ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	WITHOUT_CANCELLATION;
	char *path;
	ssize_t length;
	int fd;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	/* A sysfs attribute arrives whole in one read. */
	length = read(fd, buf, size);
	close(fd);
	if (length <= 0)
		return length;

	if (buf[length - 1] == '\n')
		length--;
	if ((size_t)length == size) {
		errno = ENOSPC;
		return -1;
	}
	buf[length] = '\0';
	return length;
}
