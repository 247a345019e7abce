/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of the devices in /sys/class, see sysfs_tree.h. */
#include "tool/sysfs_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/sysfs.h"
#include "tool/mounts.h"

#define CLASS "/sys/class"
#define NETWORK_DEVICES CLASS "/net"
#define DEVICES "/sys/devices"

/* Visits the devices of a host in turn. */
struct tree {
	struct hca_gid gids[HCA_GID_TABLE_SIZE];
	char name[64]; /* as in struct hca */
	struct sysfs_device device;
	int error; /* first error */
	bool same; /* all files so far have the expected text */
};

static void set_device(struct tree *tree, const struct settings *settings, size_t index)
{
	snprintf(tree->name, sizeof(tree->name), "%s%zu", settings->device_name, index);
	tree->device = (struct sysfs_device){.name = tree->name,
					     .index = index,
					     .pci = settings->pci == PCI_ON,
					     .gids = tree->gids,
					     .gid_count = gid_discover(settings->gids, tree->gids)};
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Makes the parents of the absolute @path; the first two exist. */
static int make_parents(char *path)
{
	for (char *slash = strchr(path + sizeof(CLASS), '/'); slash; slash = strchr(slash + 1, '/')) {
		int failed;

		*slash = '\0';
		failed = mkdir(path, 0755) && errno != EEXIST;
		*slash = '/';
		if (failed)
			return -errno;
	}
	return 0;
}

static int write_file(const char *path, const char *text)
{
	char line[SYSFS_TEXT_BYTES + 1];
	int length = snprintf(line, sizeof(line), "%s\n", text), file, error = 0;

	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (file < 0)
		return -errno;
	if (write(file, line, (size_t)length) != length)
		error = -ENOSPC;
	close(file);
	return error;
}

static void tree_file_make(void *argument, const char *name, const char *text)
{
	struct tree *tree = argument;
	char path[PATH_MAX];

	if (tree->error)
		return;
	snprintf(path, sizeof(path), CLASS "/%s", name);
	tree->error = make_parents(path);
	if (!tree->error)
		tree->error = write_file(path, text);
}

/* Links each interface of the GIDs once, as an adapter's PCI function lists them. */
static void link_interfaces(struct tree *tree)
{
	char path[PATH_MAX], target[PATH_MAX];

	for (size_t i = 0; i < tree->device.gid_count && !tree->error; i++) {
		const char *interface = tree->gids[i].netdev;

		snprintf(path, sizeof(path), CLASS "/infiniband/%s/device/net/%s", tree->name, interface);
		snprintf(target, sizeof(target), NETWORK_DEVICES "/%s", interface);
		tree->error = make_parents(path);
		if (!tree->error && symlink(target, path) && errno != EEXIST)
			tree->error = -errno;
	}
}

/* Makes the directory @path of a device, and a link @name in the class. */
static int link_class(const char *path, const char *class, const char *name)
{
	char made[PATH_MAX], link[PATH_MAX];

	snprintf(made, sizeof(made), "%s/%s/%s/", path, class, name);
	if (make_parents(made))
		return -errno;
	made[strlen(made) - 1] = '\0';
	snprintf(link, sizeof(link), CLASS "/%s/%s", class, name);
	if (make_parents(link) || symlink(made, link))
		return -errno;
	/* Programs read the function's name at the end of this link. */
	strcat(made, "/device");
	return symlink(path, made) ? -errno : 0;
}

/* Programs read the driver's name at the end of the link; DPDK skips functions without one. */
static int link_driver(const char *function)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/driver", function);
	return symlink("../../../bus/pci/drivers/mlx5_core", path) ? -errno : 0;
}

/* The device's files are made through these links. */
static int make_function(const struct tree *tree)
{
	char path[64], address[SYSFS_PCI_BYTES], node[32];
	int error;

	sysfs_pci_address(tree->device.index, address);
	snprintf(path, sizeof(path), SYSFS_PCI_ROOT "/%s", address);
	snprintf(node, sizeof(node), "uverbs%zu", tree->device.index);
	error = link_class(path, "infiniband", tree->name);
	if (!error)
		error = link_class(path, "infiniband_verbs", node);
	return error ? error : link_driver(path);
}

/* Covers the kernel's classes, whose devices softhca's libraries do not support. */
static int make_class_directories(void)
{
	static const char *const names[] = {"infiniband", "infiniband_verbs", NULL};
	bool all_there = !access(CLASS "/infiniband", F_OK) && !access(CLASS "/infiniband_verbs", F_OK);
	int error = all_there ? mounts_cover(CLASS "/infiniband") : mounts_replace(CLASS, names);

	return error || !all_there ? error : mounts_cover(CLASS "/infiniband_verbs");
}

int sysfs_tree_make(const struct settings *settings)
{
	static const char *const ours[] = {"pci" SYSFS_PCI_BUS, NULL};
	struct tree tree = {.error = make_class_directories()};

	if (!tree.error && settings->pci == PCI_ON)
		tree.error = mounts_replace(DEVICES, ours);
	for (uint32_t i = 0; i < settings->devices && !tree.error; i++) {
		set_device(&tree, settings, i);
		if (tree.device.pci)
			tree.error = make_function(&tree);
		if (tree.error)
			break;
		sysfs_each(&tree.device, tree_file_make, &tree);
		link_interfaces(&tree);
	}
	return tree.error;
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/* A PCI function must be present or absent, as the settings require. */
static bool function_is_right(const struct tree *tree)
{
	char path[128];

	snprintf(path, sizeof(path), CLASS "/infiniband/%s/device/vendor", tree->name);
	return tree->device.pci == (access(path, F_OK) == 0);
}

/* Compares the file with @text and a newline. */
static bool has_text(const char *path, const char *text)
{
	char found[SYSFS_TEXT_BYTES + 2];
	FILE *file = fopen(path, "re");
	size_t length = strlen(text), read;

	if (!file)
		return false;
	read = fread(found, 1, sizeof(found), file);
	fclose(file);
	return read == length + 1 && !memcmp(found, text, length) && found[length] == '\n';
}

static void look_at_file(void *argument, const char *name, const char *text)
{
	struct tree *tree = argument;
	char path[PATH_MAX];

	/* Counters may differ; identity and place may not. */
	if (!tree->same || !(strstr(name, "_guid") || strstr(name, "/device/")))
		return;
	snprintf(path, sizeof(path), CLASS "/%s", name);
	tree->same = has_text(path, text);
}

bool sysfs_tree_is_there(const struct settings *settings)
{
	struct tree tree = {.same = true};

	for (uint32_t i = 0; i < settings->devices && tree.same; i++) {
		set_device(&tree, settings, i);
		tree.same = function_is_right(&tree);
		sysfs_each(&tree.device, look_at_file, &tree);
	}
	return tree.same;
}
