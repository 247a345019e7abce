/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of a captured packet, see capture_ethernet.h. */
#include "filter/capture_ethernet.h"

#include "hca/hca.h"

#define MAC_BYTES 6
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_UDP 17

static const struct hca_gid *own_gid(const struct hca *hca, const union ibv_gid *gid)
{
	for (size_t i = 0; i < hca->gid_count; i++)
		if (!memcmp(&hca->gids[i].gid, gid, sizeof(*gid)))
			return &hca->gids[i];
	return NULL;
}

/*
 * Recovers the MAC address from a link-local address (RFC 4291, appendix A); others yield a locally administered one.
 */
static void mac_of_gid(uint8_t *mac, const union ibv_gid *gid)
{
	const uint8_t *raw = gid->raw;

	if (raw[0] == 0xfe && raw[1] == 0x80 && raw[11] == 0xff && raw[12] == 0xfe) {
		memcpy(mac, raw + 8, 3);
		memcpy(mac + 3, raw + 13, 3);
		mac[0] ^= 2;
	} else {
		memcpy(mac, "\2\0", 2);
		memcpy(mac + 2, raw + 12, 4);
	}
}

/* RFC 1112, 6.4; RFC 2464, 7. */
static void mac_of_group(uint8_t *mac, const union ibv_gid *gid, bool ipv4)
{
	memcpy(mac, ipv4 ? "\1\0\x5e" : "\x33\x33", ipv4 ? 3 : 2);
	memcpy(mac + (ipv4 ? 3 : 2), gid->raw + (ipv4 ? 13 : 12), ipv4 ? 3 : 4);
	if (ipv4)
		mac[3] &= 0x7f;
}

static void put_mac(uint8_t *mac, const struct hca *hca, const union ibv_gid *gid, bool ipv4)
{
	const struct hca_gid *own = own_gid(hca, gid);

	if (own)
		memcpy(mac, own->mac, MAC_BYTES);
	else if (gid->raw[0] == 0xff || (ipv4 && gid->raw[12] >> 4 == 0xe))
		mac_of_group(mac, gid, ipv4);
	else
		mac_of_gid(mac, gid);
}

/* Adds @bytes to an unfolded checksum (RFC 1071). */
static uint64_t checksum_add(uint64_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i + 1 < length; i += 2)
		sum += (uint64_t)bytes[i] << 8 | bytes[i + 1];
	return length & 1 ? sum + ((uint64_t)bytes[length - 1] << 8) : sum;
}

static uint16_t checksum_finish(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* RFC 768: includes a pseudo header of addresses, protocol and length. 0 would mean that the checksum is missing. */
static uint16_t udp_checksum(const uint8_t *ip, bool ipv4, const uint8_t *udp, const uint8_t *bytes, uint32_t length)
{
	uint64_t sum = PROTOCOL_UDP + UDP_BYTES + length;
	uint16_t checksum;

	sum = ipv4 ? checksum_add(sum, ip + 12, 8) : checksum_add(sum, ip + 8, 32);
	checksum = checksum_finish(checksum_add(checksum_add(sum, udp, UDP_BYTES), bytes, length));
	return checksum ? checksum : 0xffff;
}

uint32_t capture_headers_write(uint8_t *to, const struct hca *hca, const struct packet_path *path, uint16_t source_port,
			       const uint8_t *bytes, uint32_t length)
{
	bool ipv4 = ip_is_version_4(path);
	uint8_t *ip = to + ETHERNET_BYTES, *udp = ip + (ipv4 ? IPV4_BYTES : IPV6_BYTES);

	put_mac(to, hca, &path->destination, ipv4);
	put_mac(to + MAC_BYTES, hca, &path->source, ipv4);
	ip_put16(to + 2 * MAC_BYTES, ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	ip_headers_write(ip, path, source_port, (uint16_t)hca->settings.roce_port, 0, length);
	if (ipv4)
		ip_put16(ip + IPV4_CHECKSUM, checksum_finish(checksum_add(0, ip, IPV4_BYTES)));
	ip_put16(udp + UDP_CHECKSUM, udp_checksum(ip, ipv4, udp, bytes, length));
	return (uint32_t)(udp - to) + UDP_BYTES;
}
