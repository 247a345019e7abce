/* SPDX-License-Identifier: BSD-2-Clause */
/* The GID table. */
#include "hca/gid.h"

#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>

struct gid_table {
	struct hca_gid *entries;
	size_t count, size;
};

struct interface {
	const char *name;
	uint32_t ifindex;
	uint8_t mac[6];
};

/* The link-local GIDs of more would not fit into a table. */
#define MAX_INTERFACES (HCA_GID_TABLE_SIZE / 2)

static const uint8_t ipv4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool gid_is_ipv4(const union ibv_gid *gid)
{
	return memcmp(gid->raw, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

bool gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

uint32_t gid_ipv4(const union ibv_gid *gid)
{
	uint32_t address;

	memcpy(&address, gid->raw + 12, sizeof(address));
	return be32toh(address);
}

union ibv_gid gid_of_ipv4(uint32_t address)
{
	union ibv_gid gid;

	memcpy(gid.raw, ipv4_prefix, sizeof(ipv4_prefix));
	address = htobe32(address);
	memcpy(gid.raw + sizeof(ipv4_prefix), &address, sizeof(address));
	return gid;
}

bool gid_is_multicast(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff || (gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

int gid_find(const struct hca_gid *table, size_t count, const union ibv_gid *gid, enum ibv_gid_type type)
{
	size_t index;

	for (index = 0; index < count; index++)
		if (table[index].type == type && memcmp(&table[index].gid, gid, sizeof(*gid)) == 0)
			return (int)index;
	return -ENOENT;
}

static void add_entry(struct gid_table *table, const struct interface *interface, const union ibv_gid *gid,
		      enum ibv_gid_type type)
{
	struct hca_gid *entry;

	if (table->count == table->size)
		return;
	entry = &table->entries[table->count++];
	memset(entry, 0, sizeof(*entry));
	entry->gid = *gid;
	entry->type = type;
	entry->ifindex = interface->ifindex;
	strncpy(entry->netdev, interface->name, sizeof(entry->netdev) - 1);
	memcpy(entry->mac, interface->mac, sizeof(entry->mac));
}

static void add_gid(struct gid_table *table, const struct interface *interface, const union ibv_gid *gid)
{
	add_entry(table, interface, gid, IBV_GID_TYPE_ROCE_V1);
	add_entry(table, interface, gid, IBV_GID_TYPE_ROCE_V2);
}

/* Returns fe80::/64 with the modified EUI-64 of the MAC address (RFC 4291, appendix A). */
static union ibv_gid link_local_gid(const uint8_t mac[6])
{
	return (union ibv_gid){
		.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

static void add_ipv4(struct gid_table *table, const struct interface *interface, const struct in_addr *address)
{
	union ibv_gid gid;

	memcpy(gid.raw, ipv4_prefix, sizeof(ipv4_prefix));
	memcpy(gid.raw + sizeof(ipv4_prefix), address, sizeof(*address));
	add_gid(table, interface, &gid);
}

/* Skips the link-local address made from the MAC, already in the table. */
static void add_ipv6(struct gid_table *table, const struct interface *interface, const struct in6_addr *address)
{
	union ibv_gid gid, first = link_local_gid(interface->mac);

	memcpy(gid.raw, address, sizeof(gid.raw));
	if (memcmp(&gid, &first, sizeof(gid)) != 0)
		add_gid(table, interface, &gid);
}

/* Addresses may carry a label: "eth0:1" is an address of eth0. */
static bool is_address_of(const struct ifaddrs *entry, const struct interface *interface, sa_family_t family)
{
	size_t length = strlen(interface->name);

	return entry->ifa_addr && entry->ifa_addr->sa_family == family &&
	       strncmp(entry->ifa_name, interface->name, length) == 0 &&
	       (entry->ifa_name[length] == '\0' || entry->ifa_name[length] == ':');
}

static bool has_address(const struct ifaddrs *list, const struct interface *interface)
{
	for (; list; list = list->ifa_next)
		if (is_address_of(list, interface, AF_INET) || is_address_of(list, interface, AF_INET6))
			return true;
	return false;
}

static void add_interface(struct gid_table *table, const struct ifaddrs *list, const struct interface *interface)
{
	union ibv_gid gid = link_local_gid(interface->mac);
	const struct ifaddrs *entry;

	add_gid(table, interface, &gid);
	for (entry = list; entry; entry = entry->ifa_next)
		if (is_address_of(entry, interface, AF_INET))
			add_ipv4(table, interface, &((const struct sockaddr_in *)entry->ifa_addr)->sin_addr);
	for (entry = list; entry; entry = entry->ifa_next)
		if (is_address_of(entry, interface, AF_INET6))
			add_ipv6(table, interface, &((const struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr);
}

/* Tunnels have no MAC address: a locally administered one. */
static void set_mac(struct interface *interface, const struct sockaddr_ll *link)
{
	const uint8_t made_up[6] = {
		2, 0, link->sll_ifindex >> 24, link->sll_ifindex >> 16, link->sll_ifindex >> 8, link->sll_ifindex};

	memcpy(interface->mac, link->sll_halen == 6 ? link->sll_addr : made_up, 6);
}

static int by_ifindex(const void *left, const void *right)
{
	uint32_t a = ((const struct interface *)left)->ifindex, b = ((const struct interface *)right)->ifindex;

	return a < b ? -1 : a > b;
}

/* Collects the usable interfaces, sorted because getifaddrs(3) guarantees no order. */
static size_t interfaces_collect(const struct ifaddrs *list, struct interface *interfaces)
{
	const struct ifaddrs *entry;
	struct interface *interface;
	size_t count = 0;

	for (entry = list; entry && count < MAX_INTERFACES; entry = entry->ifa_next) {
		if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_PACKET || entry->ifa_flags & IFF_LOOPBACK ||
		    ~entry->ifa_flags & (IFF_UP | IFF_RUNNING))
			continue;
		interface = &interfaces[count];
		interface->name = entry->ifa_name;
		interface->ifindex = ((const struct sockaddr_ll *)entry->ifa_addr)->sll_ifindex;
		set_mac(interface, (const struct sockaddr_ll *)entry->ifa_addr);
		count += has_address(list, interface);
	}
	qsort(interfaces, count, sizeof(*interfaces), by_ifindex);
	return count;
}

/* Adds the loopback interface, with 127.0.0.1 first even if not in @list. */
static void add_loopback(struct gid_table *table, const struct ifaddrs *list)
{
	const struct interface loopback = {.name = "lo", .ifindex = 1};
	const struct in_addr first = {htonl(INADDR_LOOPBACK)}, *other;
	union ibv_gid gid = link_local_gid(loopback.mac);

	add_gid(table, &loopback, &gid);
	add_ipv4(table, &loopback, &first);
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		if (!is_address_of(entry, &loopback, AF_INET))
			continue;
		other = &((const struct sockaddr_in *)entry->ifa_addr)->sin_addr;
		if (other->s_addr != first.s_addr)
			add_ipv4(table, &loopback, other);
	}
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next)
		if (is_address_of(entry, &loopback, AF_INET6))
			add_ipv6(table, &loopback, &((const struct sockaddr_in6 *)entry->ifa_addr)->sin6_addr);
}

size_t gid_table_fill(const struct ifaddrs *list, struct hca_gid *entries, size_t size)
{
	struct gid_table table = {.entries = entries, .size = size};
	struct interface interfaces[MAX_INTERFACES];
	size_t index, count = interfaces_collect(list, interfaces);

	for (index = 0; index < count; index++)
		add_interface(&table, list, &interfaces[index]);
	if (table.count == 0)
		add_loopback(&table, list);
	return table.count;
}

size_t gid_discover(enum setting_GIDS source, struct hca_gid *table)
{
	struct ifaddrs *list = NULL;
	size_t count;

	if (source == GIDS_AUTO && getifaddrs(&list))
		list = NULL; /* no netlink, as in a sandbox: no interface */
	count = gid_table_fill(list, table, HCA_GID_TABLE_SIZE);
	if (list)
		freeifaddrs(list);
	return count;
}
