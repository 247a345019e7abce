/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of a port: payload bytes per packet.
 *
 * A RoCE port has the MTU of its interface minus the longest headers of a packet (IBTA annex A17), as Linux computes it
 * for every RoCE adapter. The GID table here may cover several interfaces, and a program that queries the active MTU
 * may use any entry, so the smallest MTU counts. It is queried anew each time, because interfaces change.
 */
#ifndef SOFTHCA_HCA_PORT_MTU_H
#define SOFTHCA_HCA_PORT_MTU_H

#include <stddef.h>
#include <stdint.h>

struct hca;

/** Returns the largest MTU of 256 … 4096 with packets that fit an interface of MTU @bytes; 256 if none fits. Pure. */
uint32_t port_mtu_of_interface(uint32_t bytes);

/**
 * Returns the active MTU of the port of @hca in bytes, according to the setting MTU. Makes some system calls; any
 * thread may call.
 */
uint32_t port_active_mtu(const struct hca *hca);

/**
 * Returns the MTU set by the setting MTU or, without one, the largest MTU with packets that fit the interface of GID
 * @index of @hca. In bytes. Makes some system calls; any thread may call.
 */
uint32_t port_gid_mtu(const struct hca *hca, size_t index);

/**
 * Returns the largest path MTU that a QP of @hca may have, in bytes; packets that exceed the interface's MTU are sent
 * in fragments.
 */
uint32_t port_most_mtu(const struct hca *hca);

#endif
