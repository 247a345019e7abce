/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a device in sysfs. */
#include "observe/sysfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/limits.h"
#include "observe/counters.h"
#include "hca/identity.h"

#define PORT "ports/1" /* the only one */

struct visit {
	const struct sysfs_device *device;
	void (*file)(void *argument, const char *path, const char *text);
	void *argument;
};

static void visit_file(const struct visit *visit, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "infiniband/%s/%s", visit->device->name, name);
	visit->file(visit->argument, path, text);
}

/* ---- contents --------------------------------------------------------------------------------------------------- */

/* Formats a GUID or GID. */
static void put_groups(char *text, size_t size, const void *bytes, size_t groups)
{
	const uint8_t *from = bytes;
	size_t used = 0;

	for (size_t i = 0; i < groups; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%02x%02x", i ? ":" : "", from[2 * i],
					 from[2 * i + 1]);
}

static void put_guid(const struct sysfs_device *device, char *text, size_t size)
{
	__be64 guid = identity_guid(device->gids, device->index);

	put_groups(text, size, &guid, sizeof(guid) / 2);
}

/* Formats the description that rdma-ndd(8) sets on most systems, 64 bytes (IBTA 14.2.5.2). */
static void put_description(const struct sysfs_device *device, char *text, size_t size)
{
	struct utsname host;

	snprintf(text, size, "%.40s %.20s", uname(&host) ? "localhost" : host.nodename, device->name);
}

static void put_firmware(const struct sysfs_device *device, char *text, size_t size)
{
	(void)device;
	identity_firmware(text, size);
}

static void put_type(const struct sysfs_device *device, char *text, size_t size)
{
	(void)device;
	snprintf(text, size, "MT%d", LIMIT_VENDOR_PART_ID);
}

static void put_pci_device(const struct sysfs_device *device, char *text, size_t size)
{
	(void)device;
	snprintf(text, size, "0x%04x", LIMIT_VENDOR_PART_ID);
}

/*
 * Identifies the function for programs without libpci (Documentation/admin-guide/sysfs-rules.rst). One device per slot.
 */
static void put_uevent(const struct sysfs_device *device, char *text, size_t size)
{
	char address[SYSFS_PCI_BYTES];

	sysfs_pci_address(device->index, address);
	snprintf(text, size, "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:%04X\nPCI_SLOT_NAME=%s",
		 LIMIT_VENDOR_PART_ID, address);
}

static void put_revision(const struct sysfs_device *device, char *text, size_t size)
{
	(void)device;
	snprintf(text, size, "%x", LIMIT_HW_VERSION);
}

void sysfs_pci_address(size_t index, char address[SYSFS_PCI_BYTES])
{
	snprintf(address, SYSFS_PCI_BYTES, SYSFS_PCI_BUS ":%02x.0", (unsigned int)index & 0x1f);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

#define COUNTER_NONE COUNTER_COUNT

static uint64_t sysfs_counter(const struct sysfs_device *device, unsigned int counter)
{
	return device->counter && counter != COUNTER_NONE ? device->counter(device->argument, counter) : 0;
}

static void visit_table(const struct visit *visit)
{
	const struct sysfs_device *device = visit->device;
	char text[SYSFS_TEXT_BYTES];

#define SYSFS_TEXT(path, contents) visit_file(visit, path, contents);
#define SYSFS_PCI(path, contents)                                                                                      \
	if (device->pci)                                                                                               \
		visit_file(visit, "device/" path, contents);
#define SYSFS_MADE_PCI(path, function)                                                                                 \
	if (device->pci) {                                                                                             \
		function(device, text, sizeof(text));                                                                  \
		visit_file(visit, "device/" path, text);                                                               \
	}
#define SYSFS_MADE(path, function)                                                                                     \
	function(device, text, sizeof(text));                                                                          \
	visit_file(visit, path, text);
#define SYSFS_COUNTER(path, unit, FIRST, SECOND)                                                                       \
	snprintf(text, sizeof(text), "%" PRIu64,                                                                       \
		 (sysfs_counter(device, COUNTER_##FIRST) + sysfs_counter(device, COUNTER_##SECOND)) / (unit));         \
	visit_file(visit, path, text);
#include "observe/sysfs.def"
}

/* As in the kernel, an unused entry is a GID of zeros without type and interface. */
static void visit_gid(const struct visit *visit, size_t index)
{
	const struct sysfs_device *device = visit->device;
	static const union ibv_gid none;
	const struct hca_gid *entry = index < device->gid_count ? &device->gids[index] : NULL;
	char path[64], text[SYSFS_TEXT_BYTES];

	snprintf(path, sizeof(path), PORT "/gids/%zu", index);
	put_groups(text, sizeof(text), entry ? &entry->gid : &none, sizeof(none) / 2);
	visit_file(visit, path, text);
	if (!entry)
		return;
	snprintf(path, sizeof(path), PORT "/gid_attrs/types/%zu", index);
	visit_file(visit, path, entry->type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	snprintf(path, sizeof(path), PORT "/gid_attrs/ndevs/%zu", index);
	visit_file(visit, path, entry->netdev);
}

/* Files that libibverbs reads: the ABI of uverbs, and the device of a node (drivers/infiniband/core/uverbs_main.c). */
static void visit_verbs(const struct visit *visit)
{
	char path[64], text[SYSFS_TEXT_BYTES];

	visit->file(visit->argument, "infiniband_verbs/abi_version", "6");
	snprintf(path, sizeof(path), "infiniband_verbs/uverbs%zu/ibdev", visit->device->index);
	visit->file(visit->argument, path, visit->device->name);
	snprintf(path, sizeof(path), "infiniband_verbs/uverbs%zu/abi_version", visit->device->index);
	visit->file(visit->argument, path, "1");
	snprintf(path, sizeof(path), "infiniband_verbs/uverbs%zu/dev", visit->device->index);
	snprintf(text, sizeof(text), "231:%zu", 192 + visit->device->index);
	visit->file(visit->argument, path, text);
}

void sysfs_each(const struct sysfs_device *device, void (*file)(void *argument, const char *path, const char *text),
		void *argument)
{
	const struct visit visit = {device, file, argument};

	visit_table(&visit);
	for (size_t i = 0; i < LIMIT_GID_TABLE; i++)
		visit_gid(&visit, i);
	visit_verbs(&visit);
}

struct search {
	const char *path;
	char *text;
	bool found;
};

static void search_compare(void *argument, const char *path, const char *text)
{
	struct search *search = argument;

	if (search->found || strcmp(path, search->path) != 0)
		return;
	snprintf(search->text, SYSFS_TEXT_BYTES, "%s", text);
	search->found = true;
}

int sysfs_read(const struct sysfs_device *device, const char *path, char text[SYSFS_TEXT_BYTES])
{
	struct search search = {.path = path, .text = text};

	sysfs_each(device, search_compare, &search);
	return search.found ? 0 : -ENOENT;
}
