/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MTU of a port: how many bytes of payload a packet has.
 *
 * A RoCE port has that of its interface, less what a packet has of headers at most (IBTA annex A17; the Linux kernel reckons
 * so for every RoCE adapter). The GID table here may have several interfaces, and a program that asks for the active MTU may
 * use any entry: the smallest counts. It is asked for anew each time, since interfaces change.
 */
#ifndef SOFTHCA_HCA_PORT_MTU_H
#define SOFTHCA_HCA_PORT_MTU_H

#include <stdint.h>

struct hca;

/** The largest MTU of 256 … 4096 whose packets an interface of MTU @bytes takes; 256 if it takes none. Pure. */
uint32_t port_mtu_of_interface(uint32_t bytes);

/** The active MTU of the port of @hca in bytes, as the setting MTU says. Some system calls; any thread. */
uint32_t port_active_mtu(const struct hca *hca);

/** The largest path MTU that a QP of @hca may have, in bytes: what does not fit into the interface goes in fragments. */
uint32_t port_most_mtu(const struct hca *hca);

#endif
