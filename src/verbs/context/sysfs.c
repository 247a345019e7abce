/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs read sysfs through the library (librdmacm, ibv_devinfo, Open MPI). Files of softhca's devices come from
 * observe/sysfs.def; other files are real.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"
#include "observe/counters.h"
#include "observe/sysfs.h"
#include "verbs/object/objects.h"

/* Static because the symbol takes no context and its result must stay valid. Set once. */
static char sysfs_path[257] = "/sys";
static pthread_once_t path_once = PTHREAD_ONCE_INIT;

static void sysfs_path_init(void)
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
	pthread_once(&path_once, sysfs_path_init);
	return sysfs_path;
}

static uint64_t sysfs_counter(const void *hca, unsigned int counter)
{
	return counter_read(hca, counter);
}

/*
 * Returns the part of @path below /sys/class or below the root of ibv_device.ibdev_path and dev_path, otherwise NULL.
 */
static const char *path_in_class(const char *path)
{
	static const char *const roots[] = {"/sys/class/", USER_DEVICE_ROOT "/"};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (strncmp(path, roots[i], strlen(roots[i])) == 0)
			return path + strlen(roots[i]);
	return NULL;
}

/* Returns true if @path is a file of a device of softhca. */
static bool sysfs_read_own(const char *path, char text[SYSFS_TEXT_BYTES])
{
	const char *below = path_in_class(path);

	for (size_t i = 0; below && i < hca_count(); i++) {
		const struct hca *hca = hca_device(i);
		const struct sysfs_device device = {.name = hca_name(hca),
						    .index = i,
						    .gids = hca->gids,
						    .gid_count = hca->gid_count,
						    .pci = hca->settings.pci == PCI_ON,
						    .counter = sysfs_counter,
						    .argument = hca};

		if (!sysfs_read(&device, below, text))
			return true;
	}
	return false;
}

/* Copies at most @size bytes. Returns their number, or -1 with errno set. */
static ssize_t sysfs_read_path(const char *path, char *buf, size_t size)
{
	char own[SYSFS_TEXT_BYTES];
	ssize_t length;
	int fd;

	if (sysfs_read_own(path, own)) {
		length = (ssize_t)strnlen(own, size);
		memcpy(buf, own, (size_t)length);
		return length;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* One read returns a whole sysfs attribute. */
	length = read(fd, buf, size);
	close(fd);
	return length;
}

int softhca_ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	WITHOUT_CANCELLATION;
	char *path;
	ssize_t length;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;
	length = sysfs_read_path(path, buf, size);
	free(path);
	if (length <= 0)
		return (int)length;
	if (buf[length - 1] == '\n')
		length--;
	if ((size_t)length == size) {
		errno = ENOSPC;
		return -1;
	}
	buf[length] = '\0';
	return (int)length;
}
