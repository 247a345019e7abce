/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of a port: payload bytes per packet.
 *
 * It is the MTU of the interface minus the longest headers of a packet (IBTA annex A17), as in Linux: the smallest one,
 * since a program may use any GID. It is queried anew each time, because interfaces change.
 */
#ifndef SOFTHCA_HCA_PORT_MTU_H
#define SOFTHCA_HCA_PORT_MTU_H

#include <stddef.h>
#include <stdint.h>

struct hca;

/** Returns the largest MTU of 256 … 4096 whose packets fit an interface of MTU @bytes, or 256. Pure. */
uint32_t port_mtu_of_interface(uint32_t bytes);

/** Returns the port's active MTU, or the setting MTU, in bytes. Makes some system calls; any thread may call. */
uint32_t port_active_mtu(const struct hca *hca);

/**
 * Returns the setting MTU, or the largest MTU for the interface of GID @index, in bytes. Makes some system calls; any
 * thread may call.
 */
uint32_t port_gid_mtu(const struct hca *hca, size_t index);

/** Returns the largest path MTU of QPs of @hca in bytes. Packets that exceed the interface's MTU are fragmented. */
uint32_t port_most_mtu(const struct hca *hca);

#endif
