/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, see sockaddr.h; rdma_get_src_port(3), rdma_get_dst_port(3). */
#include "rdmacm/sockaddr.h"

#include <netinet/in.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"

static const struct sockaddr_in *address_ipv4(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)(const void *)address;
}

static const struct sockaddr_in6 *address_ipv6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)(const void *)address;
}

static const struct sockaddr_ib *address_ib(const struct sockaddr *address)
{
	return (const struct sockaddr_ib *)(const void *)address;
}

socklen_t address_size(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

uint16_t address_port(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return be16toh(address_ipv4(address)->sin_port);
	case AF_INET6:
		return be16toh(address_ipv6(address)->sin6_port);
	case AF_IB:
		return (uint16_t)be64toh(address_ib(address)->sib_sid);
	default:
		return 0;
	}
}

void address_set_port(struct sockaddr *address, uint16_t port)
{
	struct sockaddr_ib *of_ib = (struct sockaddr_ib *)(void *)address;

	switch (address->sa_family) {
	case AF_INET:
		((struct sockaddr_in *)(void *)address)->sin_port = htobe16(port);
		break;
	case AF_INET6:
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htobe16(port);
		break;
	case AF_IB:
		of_ib->sib_sid = htobe64((be64toh(of_ib->sib_sid) & ~0xffffull) | port);
		break;
	default:
		break;
	}
}

static bool address_gid_is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

bool address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return be32toh(address_ipv4(address)->sin_addr.s_addr) >> 24 == 127;
	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address_ipv6(address)->sin6_addr);
	return false;
}

bool address_is_wild(const struct sockaddr *address)
{
	union ibv_gid gid;

	switch (address->sa_family) {
	case AF_INET:
		return !address_ipv4(address)->sin_addr.s_addr || address_is_loopback(address);
	case AF_UNSPEC:
		return true;
	default:
		gid = address_gid(address);
		return address_gid_is_zero(&gid) || address_is_loopback(address);
	}
}

bool address_is_multicast(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return IN_MULTICAST(be32toh(address_ipv4(address)->sin_addr.s_addr));
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&address_ipv6(address)->sin6_addr);
}

bool address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid of_a = address_gid(a), of_b = address_gid(b);

	return a->sa_family == b->sa_family && !memcmp(&of_a, &of_b, sizeof(of_a));
}

union ibv_gid address_gid(const struct sockaddr *address)
{
	union ibv_gid gid = {0};

	switch (address->sa_family) {
	case AF_INET:
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(gid.raw + 12, &address_ipv4(address)->sin_addr, 4);
		break;
	case AF_INET6:
		memcpy(gid.raw, &address_ipv6(address)->sin6_addr, 16);
		break;
	case AF_IB:
		memcpy(gid.raw, &address_ib(address)->sib_addr, 16);
		break;
	default:
		break;
	}
	return gid;
}

void address_from_gid(struct sockaddr_storage *address, const union ibv_gid *gid, uint16_t port)
{
	struct in6_addr of_ipv6;

	memcpy(&of_ipv6, gid, sizeof(of_ipv6));
	memset(address, 0, sizeof(*address));
	if (IN6_IS_ADDR_V4MAPPED(&of_ipv6)) {
		address->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)address)->sin_addr, gid->raw + 12, 4);
	} else {
		address->ss_family = AF_INET6;
		((struct sockaddr_in6 *)address)->sin6_addr = of_ipv6;
	}
	address_set_port((struct sockaddr *)address, port);
}

void address_any(struct sockaddr_storage *address, sa_family_t family, uint16_t port)
{
	memset(address, 0, sizeof(*address));
	address->ss_family = family;
	address_set_port((struct sockaddr *)address, port);
}

void address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, address_size(from));
}

__be16 softhca_rdma_get_src_port(struct rdma_cm_id *id)
{
	return htobe16(address_port(&id->route.addr.src_addr));
}

__be16 softhca_rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htobe16(address_port(&id->route.addr.dst_addr));
}
