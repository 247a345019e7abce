/* SPDX-License-Identifier: BSD-2-Clause */
/* What this machine allows, tried and not guessed, for `softhca info` and `softhca doctor`. Each takes back what it did. */
#ifndef SOFTHCA_TOOL_PROBES_H
#define SOFTHCA_TOOL_PROBES_H

#include <stdbool.h>
#include <stdint.h>

/** The number in a file of /proc/sys, or -1. */
int system_setting(const char *path);

/** A child writes to the memory of this process by /proc/PID/mem, as two programs of a host would. Returns 0 or an errno value. */
int probe_memory_of_others(void);

/** A mount namespace with a mount in it, made by a child (tool/mounts.h). Returns 0 or an errno value. */
int probe_mount_namespace(void);

/** Abstract sockets (unix(7)): a name, a connection to it, and whose it is. Returns 0 or an errno value. */
int probe_abstract_sockets(void);

/** A sealed file of memory (memfd_create(2)). Returns 0 or an errno value. */
int probe_shared_memory(void);

/** Whether the kernel cuts and joins datagrams on the socket @fd (udp(7)): "GSO and GRO", "GSO, no GRO", … */
const char *probe_trains(int fd);

#endif
