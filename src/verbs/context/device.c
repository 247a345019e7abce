/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * List of devices: ibv_get_device_list(3), ibv_get_device_name(3), ibv_get_device_index(3), ibv_get_device_guid(3).
 *
 * The devices live until the process ends: programs keep using a device after they have freed its list.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "hca/hca.h"
#include "observe/sysfs.h"
#include "verbs/context/context.h"
#include "verbs/object/log.h"
#include "verbs/object/objects.h"

/* Global because the first calls have no context. Created once, under the lock. */
static struct user_device *devices;
static size_t device_count;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Returns true if @path leads to the PCI function of @hca. /sys/class contains softhca's devices if `softhca run` made
 * them (tool/sysfs_tree.h), otherwise perhaps a device of another driver by the same name. UCX follows ibdev_path, by
 * realpath(3), up to the PCI function.
 */
static bool shown_on_pci(const struct hca *hca, size_t index, const char *path)
{
	char address[SYSFS_PCI_BYTES], expected[PATH_MAX], resolved[PATH_MAX];

	if (hca->settings.pci != PCI_ON || !realpath(path, resolved))
		return false;
	sysfs_pci_address(index, address);
	snprintf(expected, sizeof(expected), SYSFS_PCI_ROOT "/%s/infiniband/%s", address, hca_name(hca));
	return strcmp(resolved, expected) == 0;
}

static void device_paths(struct ibv_device *base, const struct hca *hca, size_t index)
{
	const char *root = USER_DEVICE_ROOT;

	snprintf(base->ibdev_path, sizeof(base->ibdev_path), "/sys/class/infiniband/%s", base->name);
	if (shown_on_pci(hca, index, base->ibdev_path))
		root = "/sys/class";
	snprintf(base->dev_path, sizeof(base->dev_path), "%s/infiniband_verbs/%s", root, base->dev_name);
	snprintf(base->ibdev_path, sizeof(base->ibdev_path), "%s/infiniband/%s", root, base->name);
}

static void device_init(struct user_device *device, size_t index)
{
	struct ibv_device *base = &device->base;

	device->hca = hca_device(index);
	base->node_type = IBV_NODE_CA;
	base->transport_type = IBV_TRANSPORT_IB;
	snprintf(base->name, sizeof(base->name), "%s", hca_name(device->hca));
	snprintf(base->dev_name, sizeof(base->dev_name), "uverbs%zu", index);
	device_paths(base, device->hca, index);
}

/* Returns false without memory; the next call tries again. */
static bool make_devices(void)
{
	size_t count = hca_count();

	contexts_handle_fork();
	pthread_mutex_lock(&devices_lock);
	if (!devices && count)
		devices = calloc(count, sizeof(*devices));
	for (; devices && device_count < count; device_count++)
		device_init(&devices[device_count], device_count);
	pthread_mutex_unlock(&devices_lock);
	return devices;
}

void devices_before_fork(void)
{
	pthread_mutex_lock(&devices_lock);
}

void devices_after_fork(void)
{
	pthread_mutex_unlock(&devices_lock);
}

struct ibv_device **softhca_ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	size_t index;

	if (num_devices)
		*num_devices = 0;
	verbs_log_open();
	if (!make_devices()) {
		errno = ENOMEM;
		return NULL;
	}
	missing_nodes_report();
	list = calloc(device_count + 1, sizeof(*list));
	if (!list)
		return NULL;
	for (index = 0; index < device_count; index++)
		list[index] = &devices[index].base;
	if (num_devices)
		*num_devices = (int)device_count;
	return list;
}

void softhca_ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *softhca_ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* The kernel has assigned no index. UCX would query it about any other value than -1 and report errors. */
int softhca_ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1;
}

__be64 softhca_ibv_get_device_guid(struct ibv_device *device)
{
	return hca_guid(to_user_device(device)->hca);
}
