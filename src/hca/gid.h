/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID table of a port. Any thread may call.
 *
 * Every interface that is up and has an IP address contributes, by index as for a RoCE adapter: its link-local GID
 * (made from the MAC address even without IPv6), its IPv4 addresses, its other IPv6 addresses; each as RoCE v1 and v2.
 * So entries 0 and 1 are link-local, 2 and 3 the first IPv4 address, where users expect it. The loopback interface is
 * used only without any other; then 127.0.0.1 is entries 2 and 3.
 */
#ifndef SOFTHCA_HCA_GID_H
#define SOFTHCA_HCA_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "core/settings.h"

struct ifaddrs;

struct hca_gid {
	union ibv_gid gid;
	enum ibv_gid_type type; /* IBV_GID_TYPE_ROCE_V1 or _V2 */
	uint32_t ifindex;
	char netdev[16];
	uint8_t mac[6];
};

#define HCA_GID_TABLE_SIZE 64

/** Fills @table (HCA_GID_TABLE_SIZE entries). Returns the number of entries, at least 4. */
size_t gid_discover(enum setting_GIDS source, struct hca_gid *table);

/** Fills @table from @list (NULL: no interface). Omits entries beyond @size. Returns their number. */
size_t gid_table_fill(const struct ifaddrs *list, struct hca_gid *table, size_t size);

/** Returns the index of (@gid, @type) in a table, or -ENOENT. */
int gid_find(const struct hca_gid *table, size_t count, const union ibv_gid *gid, enum ibv_gid_type type);

/** Returns true for ::ffff:a.b.c.d (IBTA annex A17). */
bool gid_is_ipv4(const union ibv_gid *gid);

/** Returns true for fe80::/10 (RFC 4291, 2.5.6). */
bool gid_is_link_local(const union ibv_gid *gid);

/** Convert between an IPv4 GID and an address in host byte order. */
uint32_t gid_ipv4(const union ibv_gid *gid);
union ibv_gid gid_of_ipv4(uint32_t address);

/** Returns true for ff00::/8 (IBTA 4.1.1) and IPv4 groups (annex A17.9.1), ::ffff:224.0.0.0/100. */
bool gid_is_multicast(const union ibv_gid *gid);

#endif
