/* SPDX-License-Identifier: BSD-2-Clause */
/* Mount namespaces, and directories in them with some entries replaced, see mounts.h. */
#include "tool/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_text(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(text);
	bool written;

	if (file < 0)
		return -errno;
	written = write(file, text, (size_t)length) == length;
	close(file);
	return written ? 0 : -EPERM;
}

/* user_namespaces(7): setgroups must be denied before the group is mapped. */
static int enter_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];
	int error;

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
	error = write_text("/proc/self/uid_map", map);
	if (!error)
		error = write_text("/proc/self/setgroups", "deny\n");
	snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
	return error ? error : write_text("/proc/self/gid_map", map);
}

int mounts_begin(void)
{
	int error = enter_namespace();

	if (!error && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		error = -errno;
	return error;
}

int mounts_make_file(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (file < 0)
		return -errno;
	close(file);
	return 0;
}

/*
 * A bind mount, because in a user namespace device nodes cannot be created, nor opened on a file system mounted there.
 */
static int bind_entry(int from, const char *name, const char *path)
{
	char link[4096], source[NAME_MAX + 64];
	struct stat status;
	ssize_t length;

	if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (S_ISLNK(status.st_mode)) {
		length = readlinkat(from, name, link, sizeof(link) - 1);
		if (length < 0)
			return -errno;
		link[length] = '\0';
		return symlink(link, path) ? -errno : 0;
	}
	if (S_ISDIR(status.st_mode) ? mkdir(path, 0755) && errno != EEXIST : mounts_make_file(path) != 0)
		return -errno;
	/* The program needs its current directory, to which this user may be unable to return. */
	snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", from, name);
	return mount(source, path, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static bool is_one_of(const char *name, const char *const list[])
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list;
}

static void bind_entries(DIR *directory, const char *path, const char *const except[])
{
	const struct dirent *entry;
	char target[512];

	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_one_of(entry->d_name, except))
			continue;
		snprintf(target, sizeof(target), "%s/%s", path, entry->d_name);
		bind_entry(dirfd(directory), entry->d_name, target);
	}
}

int mounts_cover(const char *path)
{
	return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755") ? -errno : 0;
}

/* An open directory still leads to covered entries. */
int mounts_replace(const char *path, const char *const except[])
{
	DIR *directory = opendir(path);
	int error;

	if (!directory)
		return -errno;
	error = mounts_cover(path);
	if (!error)
		bind_entries(directory, path, except);
	closedir(directory);
	return error;
}
