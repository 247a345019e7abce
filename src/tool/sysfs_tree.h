/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /sys/class/infiniband and infiniband_verbs with files for each device (observe/sysfs.h), and links to the interfaces that its
 * GIDs are of, for programs that read there themselves. A device that is shown on PCI has its files below /sys/devices, as those
 * of an adapter are, and /sys/class has links to them. Counters stand at 0: they are those of a process, and
 * ibv_read_sysfs_file() tells them.
 */
#ifndef SOFTHCA_TOOL_SYSFS_TREE_H
#define SOFTHCA_TOOL_SYSFS_TREE_H

#include "core/settings.h"

/** True if the files of the devices by @settings can be read already. */
bool sysfs_tree_is_there(const struct settings *settings);

/** Makes them, within a mount namespace (tool/mounts.h). Returns 0 or a negative errno value. */
int sysfs_tree_make(const struct settings *settings);

#endif
