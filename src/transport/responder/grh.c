/* SPDX-License-Identifier: BSD-2-Clause */
/* The first 40 bytes in the buffer of a datagram. */
#include "transport/responder/grh.h"

#include <arpa/inet.h>
#include <string.h>

#include "hca/gid.h"

#define IPV6_BYTES 40
#define IPV4_BYTES 20
#define NEXT_HEADER_IBA 0x1b
#define NEXT_HEADER_UDP 17
/* BTH, DETH and ICRC; preceded by UDP on RoCE v2. */
#define TRANSPORT_BYTES (12 + 8 + 4)
#define IMMEDIATE_BYTES 4
#define UDP_BYTES 8

static void build_ipv6(uint8_t *grh, const struct packet_path *path, uint16_t length, uint8_t next_header)
{
	uint32_t first = htonl(6u << 28 | (uint32_t)path->traffic_class << 20 | path->flow_label);
	uint16_t size = htons(length);

	memcpy(grh, &first, sizeof(first));
	memcpy(grh + 4, &size, sizeof(size));
	grh[6] = next_header;
	grh[7] = path->hop_limit;
	memcpy(grh + 8, &path->source, 16);
	memcpy(grh + 24, &path->destination, 16);
}

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* IBTA annex A17.4.5.1: the first 20 bytes are undefined. */
static void build_ipv4(uint8_t *grh, const struct packet_path *path, uint16_t length)
{
	uint8_t *ip = grh + (IPV6_BYTES - IPV4_BYTES);
	uint16_t size = htons((uint16_t)(length + IPV4_BYTES)), checksum;

	memset(grh, 0, IPV6_BYTES);
	ip[0] = 0x45;
	ip[1] = path->traffic_class;
	memcpy(ip + 2, &size, sizeof(size));
	ip[6] = 0x40; /* do not fragment */
	ip[8] = path->hop_limit;
	ip[9] = NEXT_HEADER_UDP;
	memcpy(ip + 12, path->source.raw + 12, 4);
	memcpy(ip + 16, path->destination.raw + 12, 4);
	checksum = ip_checksum(ip);
	memcpy(ip + 10, &checksum, sizeof(checksum));
}

void grh_build(uint8_t grh[40], const struct packet_path *path, uint64_t payload, bool immediate)
{
	uint16_t length = (uint16_t)(payload + (-payload & 3) + TRANSPORT_BYTES + (immediate ? IMMEDIATE_BYTES : 0));

	/* The source shows the family: multicast GIDs look alike for IPv4 and IPv6. */
	if (path->type != IBV_GID_TYPE_ROCE_V2)
		build_ipv6(grh, path, length, NEXT_HEADER_IBA);
	else if (gid_is_ipv4(&path->source))
		build_ipv4(grh, path, (uint16_t)(length + UDP_BYTES));
	else
		build_ipv6(grh, path, (uint16_t)(length + UDP_BYTES), NEXT_HEADER_UDP);
}
