/* SPDX-License-Identifier: BSD-2-Clause */
/* IP and UDP headers of a RoCEv2 frame (IBTA annex A17), for the ICRC and captures. Pure functions, any thread. */
#ifndef SOFTHCA_WIRE_IP_H
#define SOFTHCA_WIRE_IP_H

#include <endian.h>
#include <string.h>

#include "hca/gid.h"
#include "wire/packet.h"

#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define IP_MOST_HEADERS (IPV6_BYTES + UDP_BYTES)

/* Offsets of fields that may change on the way. */
#define IPV4_TYPE_OF_SERVICE 1
#define IPV4_TIME_TO_LIVE 8
#define IPV4_CHECKSUM 10
#define IPV6_HOP_LIMIT 7
#define UDP_CHECKSUM 6

/**
 * Returns true if frames along @path are IPv4. Checks the source, because the destination may be a multicast group,
 * whose GID does not show the version.
 */
static inline bool ip_is_version_4(const struct packet_path *path)
{
	return gid_is_ipv4(&path->source);
}

static inline void ip_put16(uint8_t *to, uint16_t value)
{
	value = htobe16(value);
	memcpy(to, &value, sizeof(value));
}

/**
 * Writes the headers for a UDP payload of @length bytes (BTH … ICRC), with checksums of 0 and, for IPv4, "do not
 * fragment". Returns their length, 28 or 48 bytes.
 */
static inline uint32_t ip_headers_write(uint8_t *to, const struct packet_path *path, uint16_t source_port,
					uint16_t destination_port, uint16_t identification, size_t length)
{
	bool old = ip_is_version_4(path);
	uint16_t udp_length = (uint16_t)(length + UDP_BYTES);
	uint8_t *udp = to + (old ? IPV4_BYTES : IPV6_BYTES);
	uint32_t first;

	if (old) {
		to[0] = 0x45;
		to[IPV4_TYPE_OF_SERVICE] = path->traffic_class;
		ip_put16(to + 2, (uint16_t)(udp_length + IPV4_BYTES));
		ip_put16(to + 4, identification);
		ip_put16(to + 6, 0x4000);
		to[IPV4_TIME_TO_LIVE] = path->hop_limit;
		to[9] = 17;
		ip_put16(to + IPV4_CHECKSUM, 0);
		memcpy(to + 12, path->source.raw + 12, 4);
		memcpy(to + 16, path->destination.raw + 12, 4);
	} else {
		first = htobe32(6u << 28 | (uint32_t)path->traffic_class << 20 | (path->flow_label & 0xfffff));
		memcpy(to, &first, sizeof(first));
		ip_put16(to + 4, udp_length);
		to[6] = 17;
		to[IPV6_HOP_LIMIT] = path->hop_limit;
		memcpy(to + 8, &path->source, 16);
		memcpy(to + 24, &path->destination, 16);
	}
	ip_put16(udp, source_port);
	ip_put16(udp + 2, destination_port);
	ip_put16(udp + 4, udp_length);
	ip_put16(udp + UDP_CHECKSUM, 0);
	return (uint32_t)(udp - to) + UDP_BYTES;
}

#endif
