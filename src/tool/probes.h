/* SPDX-License-Identifier: BSD-2-Clause */
/* Each probe undoes its changes. */
#ifndef SOFTHCA_TOOL_PROBES_H
#define SOFTHCA_TOOL_PROBES_H

#include <stdbool.h>
#include <stdint.h>

/** Returns a number in /proc/sys, or -1. */
int system_setting(const char *path);

/** A child writes to this process's memory through /proc/PID/mem. Returns 0 or an errno value. */
int probe_memory_of_others(void);

/** A child makes a mount namespace with a mount (tool/mounts.h). Returns 0 or an errno value. */
int probe_mount_namespace(void);

/** Probes a name, a connection to it, and its owner (unix(7)). Returns 0 or an errno value. */
int probe_abstract_sockets(void);

/** Probes sealed memory files (memfd_create(2)). Returns 0 or an errno value. */
int probe_shared_memory(void);

/** Returns how the kernel handles trains of datagrams on @fd (udp(7)): "GSO and GRO", "GSO, no GRO", … */
const char *probe_trains(int fd);

#endif
