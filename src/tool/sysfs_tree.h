/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /sys/class/infiniband and infiniband_verbs with files for each device (observe/sysfs.h), and links to the interfaces
 * of its GIDs, for programs that read there directly. A device that is shown on PCI has its files below /sys/devices,
 * as for an adapter, with links in /sys/class. Counters are 0: they belong to a process, and ibv_read_sysfs_file()
 * returns them.
 */
#ifndef SOFTHCA_TOOL_SYSFS_TREE_H
#define SOFTHCA_TOOL_SYSFS_TREE_H

#include "core/settings.h"

/** Returns true if the files of the devices by @settings exist already. */
bool sysfs_tree_is_there(const struct settings *settings);

/** Makes the files, in a mount namespace (tool/mounts.h). Returns 0 or a negative errno value. */
int sysfs_tree_make(const struct settings *settings);

#endif
