/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Presence: some programs, UCX before all, take an RDMA device for absent unless /dev/infiniband has a character device of
 * its name. This gives the program one, in a mount namespace of its own: /dev as it was, entry by entry, and in it a
 * directory infiniband in which the null device stands for ours. Nothing of it is seen outside, and it is gone with the
 * program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/tool.h"

#define DIRECTORY "/dev/infiniband"

/* As ibv_device.dev_name has it. */
static void node_path(char *path, size_t size, uint32_t device)
{
	snprintf(path, size, DIRECTORY "/uverbs%u", device);
}

/* What the programs ask: is it a character device, may it be read and written. */
static bool node_is_there(uint32_t device)
{
	char path[64];
	struct stat status;

	node_path(path, sizeof(path), device);
	return stat(path, &status) == 0 && S_ISCHR(status.st_mode) && access(path, R_OK | W_OK) == 0;
}

static bool all_are_there(uint32_t devices)
{
	for (uint32_t i = 0; i < devices; i++)
		if (!node_is_there(i))
			return false;
	return true;
}

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

/*
 * A mount namespace; for who may not make one, within a user namespace of its own, in which the user and the group stay
 * who they are (user_namespaces(7): setgroups must be denied before the group is mapped).
 */
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

static int make_file(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (file < 0)
		return -errno;
	close(file);
	return 0;
}

/*
 * Makes @path what @source is, by a bind mount: in a user namespace nobody may make device nodes, and those on a file
 * system that was mounted there cannot be opened.
 */
static int bind_entry(const char *source, const char *path)
{
	struct stat status;
	char link[4096];
	ssize_t length;

	if (lstat(source, &status))
		return -errno;
	if (S_ISLNK(status.st_mode)) {
		length = readlink(source, link, sizeof(link) - 1);
		if (length < 0)
			return -errno;
		link[length] = '\0';
		return symlink(link, path) ? -errno : 0;
	}
	if (S_ISDIR(status.st_mode) ? mkdir(path, 0755) && errno != EEXIST : make_file(path) != 0)
		return -errno;
	return mount(source, path, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

/* Binds all entries of the directory that is the current one into @path. What cannot be bound is left out. */
static int bind_entries(const char *path, const char *except)
{
	DIR *directory = opendir(".");
	char target[512];

	if (!directory)
		return -errno;
	for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    (except && strcmp(entry->d_name, except) == 0))
			continue;
		snprintf(target, sizeof(target), "%s/%s", path, entry->d_name);
		bind_entry(entry->d_name, target);
	}
	closedir(directory);
	return 0;
}

/* An empty directory in place of @path, into which go the entries of what was there, which is the current directory. */
static int replace(const char *path, const char *except)
{
	if (chdir(path))
		return -errno;
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755"))
		return -errno;
	return bind_entries(path, except);
}

static int make_nodes(uint32_t devices)
{
	char path[64];
	int error;

	for (uint32_t i = 0; i < devices; i++) {
		if (node_is_there(i))
			continue;
		node_path(path, sizeof(path), i);
		/* Something may be there that this user may not open: the mount hides it. */
		if (access(path, F_OK)) {
			error = make_file(path);
			if (error)
				return error;
		}
		if (mount("/dev/null", path, NULL, MS_BIND, NULL))
			return -errno;
	}
	return 0;
}

static int make_directory(uint32_t devices)
{
	int error;

	/* What happens to mounts outside is seen in here, not the other way round. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	if (access(DIRECTORY, F_OK) == 0) {
		error = replace(DIRECTORY, NULL);
	} else {
		error = replace("/dev", "infiniband");
		if (!error && mkdir(DIRECTORY, 0755))
			error = -errno;
	}
	return error ? error : make_nodes(devices);
}

/* Programs without UCX need not hear of what is missing. */
static bool ucx_is_installed(void)
{
	static const char *const patterns[] = {"/lib*/libucs.so.0", "/usr/lib*/libucs.so.0", "/usr/lib/*/libucs.so.0",
					       "/usr/local/lib*/libucs.so.0", "/opt/*/lib*/libucs.so.0"};
	const char *path = getenv("LD_LIBRARY_PATH");
	char *directories = path ? strdup(path) : NULL, *rest = directories, *directory, file[4096];
	bool found = false;
	glob_t matches;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && !found; i++) {
		found = glob(patterns[i], GLOB_NOSORT, NULL, &matches) == 0;
		if (found)
			globfree(&matches);
	}
	while (!found && (directory = strsep(&rest, ":;"))) {
		snprintf(file, sizeof(file), "%s/libucs.so.0", directory);
		found = access(file, F_OK) == 0;
	}
	free(directories);
	return found;
}

/* Mounting needs paths; a directory that is kept open leads back to where the program shall start. */
static int attempt(uint32_t devices)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), error = enter_namespace();

	if (!error)
		error = make_directory(devices);
	if (here >= 0) {
		if (fchdir(here) && !error)
			error = -errno;
		close(here);
	}
	return error;
}

/* What fails half-way cannot be undone (a user namespace cannot be left), so a child goes first. */
static int attempt_in_child(uint32_t devices)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(-attempt(devices) & 0xff);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

void presence_make(uint32_t devices)
{
	int error;

	if (all_are_there(devices))
		return;
	error = attempt_in_child(devices);
	if (!error)
		error = attempt(devices);
	if (error && ucx_is_installed())
		fprintf(stderr,
			"softhca: no " DIRECTORY "/uverbs0 for the program (%s); UCX will not see the device "
			"(--no-presence: do not try)\n",
			strerror(-error));
}
