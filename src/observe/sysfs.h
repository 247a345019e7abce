/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel would say of a device in /sys/class, below infiniband and infiniband_verbs: names and contents of files, by
 * the table observe/sysfs.def. ibv_read_sysfs_file() answers with it, and `softhca run` writes it as files into a mount
 * namespace. Pure functions but for the host's name; any thread.
 *
 * A PCI function is told of devices that show one (SOFTHCA_PCI): a program that finds it drives the adapter's queues by itself.
 */
#ifndef SOFTHCA_OBSERVE_SYSFS_H
#define SOFTHCA_OBSERVE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/gid.h"

#define SYSFS_TEXT_BYTES 512 /* more than any file has */

/* The bus of our functions, of a domain that no machine has: domains of firmware count from 0, those of Linux from 0x10000. */
#define SYSFS_PCI_BUS "5348:00"
#define SYSFS_PCI_ROOT "/sys/devices/pci" SYSFS_PCI_BUS
#define SYSFS_PCI_BYTES 16 /* of an address, with its end */

struct sysfs_device {
	const char *name; /* "mlx5_0" */
	size_t index;     /* on its host */
	const struct hca_gid *gids;
	size_t gid_count;
	bool pci; /* it shows a PCI function */
	/* What a counter (enum counter) stands at. NULL: they all read 0. */
	uint64_t (*counter)(const void *argument, unsigned int counter);
	const void *argument;
};

/** Writes the PCI address of the device of that @index, as "5348:00:00.0". */
void sysfs_pci_address(size_t index, char address[SYSFS_PCI_BYTES]);

/**
 * Calls @file for each file: @path below /sys/class, as "infiniband/mlx5_0/node_guid", and @text, its contents without a
 * newline.
 */
void sysfs_each(const struct sysfs_device *device, void (*file)(void *argument, const char *path, const char *text),
		void *argument);

/** Writes the contents of the file at @path, below /sys/class, to @text. Returns 0 or -ENOENT. */
int sysfs_read(const struct sysfs_device *device, const char *path, char text[SYSFS_TEXT_BYTES]);

#endif
