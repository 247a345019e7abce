/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /sys/class/infiniband and infiniband_verbs with files for each device (observe/sysfs.h) and links to the interfaces
 * of its GIDs. A device shown on PCI has its files below /sys/devices, with links in /sys/class. Counters are 0: they
 * belong to a process (ibv_read_sysfs_file()).
 */
#ifndef SOFTHCA_TOOL_SYSFS_TREE_H
#define SOFTHCA_TOOL_SYSFS_TREE_H

#include "core/settings.h"

/** Returns true if all files exist. */
bool sysfs_tree_is_there(const struct settings *settings);

/** Makes the files, in a mount namespace (tool/mounts.h). Returns 0 or a negative errno value. */
int sysfs_tree_make(const struct settings *settings);

#endif
