/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet addresses of GIDs. */
#ifndef SOFTHCA_VERBS_QP_NEIGHBOUR_H
#define SOFTHCA_VERBS_QP_NEIGHBOUR_H

#include "process/commands.h"

/**
 * The MAC address under which @gid is reached from the interface of @source: a multicast address, an
 * interface of our own, the address inside of a link-local GID, or what the kernel knows of an IPv4 neighbour
 * (/proc/net/arp; nothing is asked on the wire). Fills @mac. Returns 0, or -EHOSTUNREACH. Any thread.
 */
int neighbour_mac(const struct hca *hca, const struct hca_gid *source, const union ibv_gid *gid, uint8_t mac[6]);

#endif
