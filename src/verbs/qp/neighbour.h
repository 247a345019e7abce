/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet addresses of GIDs. */
#ifndef SOFTHCA_VERBS_QP_NEIGHBOUR_H
#define SOFTHCA_VERBS_QP_NEIGHBOUR_H

#include "process/commands.h"

/**
 * Fills @mac with the address of @gid, seen from the interface of @source: a multicast group, an interface of this
 * host, a link-local GID, or an IPv4 neighbour known to the kernel (/proc/net/arp; sends no request). Returns 0 or
 * -EHOSTUNREACH. Any thread.
 */
int neighbour_mac(const struct hca *hca, const struct hca_gid *source, const union ibv_gid *gid, uint8_t mac[6]);

#endif
