/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of IDs: sockaddr_in, sockaddr_in6, sockaddr_ib (AF_IB). Pure functions; any thread.
 *
 * "Wild" addresses stand for any address (rdma_bind_addr(3)): the unspecified one and, as in the kernel, loopback
 * addresses, because no RDMA device has them there (rdma-cm 2.4).
 */
#ifndef SOFTHCA_RDMACM_SOCKADDR_H
#define SOFTHCA_RDMACM_SOCKADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>

/** Returns the size, or 0 for a family that IDs do not support. */
socklen_t address_size(const struct sockaddr *address);

/** Returns the port in host order; for AF_IB, the lower 16 bits of the service ID. 0 for other families. */
uint16_t address_port(const struct sockaddr *address);
void address_set_port(struct sockaddr *address, uint16_t port);

/** Always true for AF_UNSPEC. */
bool address_is_wild(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);
bool address_is_multicast(const struct sockaddr *address);

/** Compares addresses without ports. */
bool address_equal(const struct sockaddr *a, const struct sockaddr *b);

/**
 * Returns the GID of an address on RoCE v2: ::ffff:a.b.c.d for IPv4, the 16 bytes for IPv6 and AF_IB (IBTA annex A17).
 */
union ibv_gid address_gid(const struct sockaddr *address);

/** Fills in *@address: AF_INET for an IPv4-mapped GID, otherwise AF_INET6. */
void address_from_gid(struct sockaddr_storage *address, const union ibv_gid *gid, uint16_t port);

/** Fills in the unspecified address. */
void address_any(struct sockaddr_storage *address, sa_family_t family, uint16_t port);

void address_copy(struct sockaddr_storage *to, const struct sockaddr *from);

#endif
