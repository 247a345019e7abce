/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and contents of the files that a kernel driver creates for a device in /sys/class, below infiniband and
 * infiniband_verbs (sysfs.def). ibv_read_sysfs_file() returns them, and `softhca run` writes them into a mount
 * namespace. Any thread may call. Only devices with SOFTHCA_PCI show a PCI function, because a program that finds it
 * drives the adapter's queues itself.
 */
#ifndef SOFTHCA_OBSERVE_SYSFS_H
#define SOFTHCA_OBSERVE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/gid.h"

#define SYSFS_TEXT_BYTES 512 /* more than any file has */

/*
 * PCI bus of softhca's functions, in a domain that no machine uses: firmware domains count from 0, those of Linux from
 * 0x10000.
 */
#define SYSFS_PCI_BUS "5348:00"
#define SYSFS_PCI_ROOT "/sys/devices/pci" SYSFS_PCI_BUS
#define SYSFS_PCI_BYTES 16 /* length of an address, including the final 0 */

struct sysfs_device {
	const char *name; /* "mlx5_0" */
	size_t index;     /* on its host */
	const struct hca_gid *gids;
	size_t gid_count;
	bool pci;
	/* NULL: all counters (enum counter) read 0. */
	uint64_t (*counter)(const void *argument, unsigned int counter);
	const void *argument;
};

/** Writes the PCI address of device @index, such as "5348:00:00.0". */
void sysfs_pci_address(size_t index, char address[SYSFS_PCI_BYTES]);

/**
 * Calls @file for each file with @path below /sys/class, such as "infiniband/mlx5_0/node_guid", and its contents
 * without a newline.
 */
void sysfs_each(const struct sysfs_device *device, void (*file)(void *argument, const char *path, const char *text),
		void *argument);

/** Writes the contents of the file at @path, below /sys/class, to @text. Returns 0 or -ENOENT. */
int sysfs_read(const struct sysfs_device *device, const char *path, char text[SYSFS_TEXT_BYTES]);

#endif
