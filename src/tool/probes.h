/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes what this machine supports, for `softhca info` and `softhca doctor`. Each probe undoes its changes. */
#ifndef SOFTHCA_TOOL_PROBES_H
#define SOFTHCA_TOOL_PROBES_H

#include <stdbool.h>
#include <stdint.h>

/** Returns the number in a file of /proc/sys, or -1. */
int system_setting(const char *path);

/**
 * Has a child write to the memory of this process through /proc/PID/mem, as two programs of a host would. Returns 0 or
 * an errno value.
 */
int probe_memory_of_others(void);

/** Has a child make a mount namespace with a mount in it (tool/mounts.h). Returns 0 or an errno value. */
int probe_mount_namespace(void);

/** Probes abstract sockets (unix(7)): a name, a connection to it, and its owner. Returns 0 or an errno value. */
int probe_abstract_sockets(void);

/** Probes sealed memory files (memfd_create(2)). Returns 0 or an errno value. */
int probe_shared_memory(void);

/** Returns how the kernel segments and joins datagrams on the socket @fd (udp(7)): "GSO and GRO", "GSO, no GRO", … */
const char *probe_trains(int fd);

#endif
