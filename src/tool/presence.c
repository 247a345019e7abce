/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some programs, above all UCX, need a character device in /dev/infiniband, and some read /sys/class/infiniband. A
 * mount namespace provides both (DESIGN.md): /dev keeps its entries and gets a directory infiniband with null devices;
 * for /sys/class see tool/sysfs_tree.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/mounts.h"
#include "tool/sysfs_tree.h"
#include "tool/tool.h"

#define DIRECTORY "/dev/infiniband"
/* Read by the libraries: only programs that use UCX need the nodes (verbs/context/missing_nodes.c). */
#define MISSING_NODES "SOFTHCA_MISSING_NODES"

/* Uses the name in ibv_device.dev_name. */
static void node_path(char *path, size_t size, uint32_t device)
{
	snprintf(path, size, DIRECTORY "/uverbs%u", device);
}

/* Checks what programs check: a character device that may be read and written. */
static bool node_is_there(uint32_t device)
{
	char path[64];
	struct stat status;

	node_path(path, sizeof(path), device);
	return stat(path, &status) == 0 && S_ISCHR(status.st_mode) && access(path, R_OK | W_OK) == 0;
}

bool presence_nodes_exist(uint32_t devices)
{
	for (uint32_t i = 0; i < devices; i++)
		if (!node_is_there(i))
			return false;
	return true;
}

static int nodes_make(uint32_t devices)
{
	char path[64];
	int error;

	for (uint32_t i = 0; i < devices; i++) {
		if (node_is_there(i))
			continue;
		node_path(path, sizeof(path), i);
		/* The mount hides an entry that this user may not open. */
		if (access(path, F_OK)) {
			error = mounts_make_file(path);
			if (error)
				return error;
		}
		if (mount("/dev/null", path, NULL, MS_BIND, NULL))
			return -errno;
	}
	return 0;
}

static int presence_make_directory(uint32_t devices)
{
	static const char *const nothing[] = {NULL}, *const ours[] = {"infiniband", NULL};
	int error;

	if (access(DIRECTORY, F_OK) == 0) {
		error = mounts_replace(DIRECTORY, nothing);
	} else {
		error = mounts_replace("/dev", ours);
		if (!error && mkdir(DIRECTORY, 0755))
			error = -errno;
	}
	return error ? error : nodes_make(devices);
}

/* Missing parts, to be made. */
struct presence {
	struct settings settings;
	bool nodes, files; /* character devices in /dev; files in /sys */
};

static int presence_attempt(const struct presence *presence)
{
	int error = mounts_begin();

	if (!error && presence->nodes)
		error = presence_make_directory(presence->settings.devices);
	if (!error && presence->files)
		error = sysfs_tree_make(&presence->settings);
	return error;
}

/* A child tries first, because a process cannot leave a user namespace. */
static int presence_attempt_in_child(const struct presence *presence)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(-presence_attempt(presence) & 0xff);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int presence_try(const struct presence *presence)
{
	int error = presence_attempt_in_child(presence);

	return error ? error : presence_attempt(presence);
}

/* If nodes, files and a PCI function cannot all be made, tries fewer, in order of need. */
void presence_make(const struct settings *settings)
{
	struct presence presence = {.settings = *settings,
				    .nodes = !presence_nodes_exist(settings->devices),
				    .files = !sysfs_tree_is_there(settings)};
	int error;

	unsetenv(MISSING_NODES);
	if (!presence.nodes && !presence.files)
		return;
	error = presence_try(&presence);
	if (error && presence.files && settings->pci == PCI_ON) {
		presence.settings.pci = PCI_OFF;
		error = presence_try(&presence);
	}
	if (error && presence.nodes && presence.files) {
		presence.files = false;
		error = presence_try(&presence);
	}
	if (error && presence.nodes)
		setenv(MISSING_NODES, strerror(-error), 1);
}
