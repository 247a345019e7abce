/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet addresses of GIDs, see neighbour.h; ibv_resolve_eth_l2_from_gid(). */
#include "verbs/qp/neighbour.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "hca/gid.h"
#include "verbs/object/objects.h"

#define NO_VLAN 0xffff
#define ARP_COMPLETE 2 /* ATF_COM of if_arp.h, in the flags column */

/* RFC 1112 for IPv4 groups, which have the form ::ffff:a.b.c.d or ff0e::ffff:a.b.c.d, RFC 2464 for the others. */
static bool multicast_mac(const union ibv_gid *gid, uint8_t mac[6])
{
	static const uint8_t ipv4_group[12] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (!gid_is_multicast(gid))
		return false;
	if (gid_is_ipv4(gid) || memcmp(gid->raw, ipv4_group, sizeof(ipv4_group)) == 0)
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, gid->raw[13] & 0x7f, gid->raw[14], gid->raw[15]}, 6);
	else
		memcpy(mac, (const uint8_t[]){0x33, 0x33, gid->raw[12], gid->raw[13], gid->raw[14], gid->raw[15]}, 6);
	return true;
}

static bool own_mac(const struct hca *hca, const union ibv_gid *gid, uint8_t mac[6])
{
	size_t index, count;
	const struct hca_gid *gids = hca_gids(hca, &count);

	for (index = 0; index < count; index++) {
		if (memcmp(&gids[index].gid, gid, sizeof(*gid)) == 0) {
			memcpy(mac, gids[index].mac, 6);
			return true;
		}
	}
	return false;
}

/* Extracts the MAC address from a modified EUI-64 (RFC 4291, appendix A). */
static bool link_local_mac(const union ibv_gid *gid, uint8_t mac[6])
{
	const uint8_t *raw = gid->raw;

	if (raw[0] != 0xfe || (raw[1] & 0xc0) != 0x80 || raw[11] != 0xff || raw[12] != 0xfe)
		return false;
	memcpy(mac, (const uint8_t[]){raw[8] ^ 2, raw[9], raw[10], raw[13], raw[14], raw[15]}, 6);
	return true;
}

/* A line of /proc/net/arp. */
static bool arp_line_matches(const char *line, const char *netdev, const char *ip, uint8_t mac[6])
{
	char found_ip[INET_ADDRSTRLEN], found_netdev[16], hardware[18];
	unsigned int flags;

	if (sscanf(line, "%15s 0x%*x 0x%x %17s %*s %15s", found_ip, &flags, hardware, found_netdev) != 4)
		return false;
	return flags & ARP_COMPLETE && strcmp(found_ip, ip) == 0 && strcmp(found_netdev, netdev) == 0 &&
	       sscanf(hardware, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		      &mac[5]) == 6;
}

static bool arp_mac(const struct hca_gid *source, const union ibv_gid *gid, uint8_t mac[6])
{
	char ip[INET_ADDRSTRLEN], line[160];
	bool found = false;
	FILE *table;

	if (!gid_is_ipv4(gid) || !inet_ntop(AF_INET, gid->raw + 12, ip, sizeof(ip)))
		return false;
	table = fopen("/proc/net/arp", "re");
	while (table && !found && fgets(line, sizeof(line), table))
		found = arp_line_matches(line, source->netdev, ip, mac);
	if (table)
		fclose(table);
	return found;
}

int neighbour_mac(const struct hca *hca, const struct hca_gid *source, const union ibv_gid *gid, uint8_t mac[6])
{
	WITHOUT_CANCELLATION;

	if (multicast_mac(gid, mac) || own_mac(hca, gid, mac) || link_local_mac(gid, mac) || arp_mac(source, gid, mac))
		return 0;
	return -EHOSTUNREACH;
}

/* Returns a negative errno value, as the real function does. @vid may be NULL. */
int softhca_ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	struct hca *hca = hca_of_context(context);
	size_t count;
	const struct hca_gid *gids = hca_gids(hca, &count);
	int error;

	if (attr->grh.sgid_index >= count)
		return -REFUSE(hca, "ibv_resolve_eth_l2_from_gid", EINVAL, RULE_GID_EMPTY, attr->grh.sgid_index, count);
	error = neighbour_mac(hca, &gids[attr->grh.sgid_index], &attr->grh.dgid, eth_mac);
	if (error)
		return -REFUSE(hca, "ibv_resolve_eth_l2_from_gid", EHOSTUNREACH, RULE_GID_NO_NEIGHBOUR,
			       be64toh(attr->grh.dgid.global.subnet_prefix),
			       be64toh(attr->grh.dgid.global.interface_id));
	if (vid)
		*vid = NO_VLAN;
	return 0;
}
