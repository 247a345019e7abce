/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of ids: sockaddr_in, sockaddr_in6, sockaddr_ib (AF_IB). Pure functions on memory of the caller; any thread.
 *
 * "Wild" is what rdma_bind_addr(3) calls any address: unspecified, and, as in the kernel, every loopback address
 * (rdma-cm 2.4), since 127.0.0.1 is on no RDMA device there.
 */
#ifndef SOFTHCA_RDMACM_SOCKADDR_H
#define SOFTHCA_RDMACM_SOCKADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>

/** Bytes of an address by its family, 0 for a family that ids do not have. */
socklen_t address_size(const struct sockaddr *address);

/** The port in host order; for AF_IB the lower 16 bits of the service id. 0 for another family. */
uint16_t address_port(const struct sockaddr *address);
void address_set_port(struct sockaddr *address, uint16_t port);

/** True if @address is unspecified or a loopback address; always for AF_UNSPEC. */
bool address_is_wild(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);
bool address_is_multicast(const struct sockaddr *address);

/** True if the addresses are the same whatever their ports. */
bool address_equal(const struct sockaddr *a, const struct sockaddr *b);

/** The GID of an address on RoCE v2: for IPv4 ::ffff:a.b.c.d, for IPv6 and AF_IB its 16 bytes (IBTA annex A17). */
union ibv_gid address_gid(const struct sockaddr *address);

/** The other way round, with @port: AF_INET or AF_INET6 as the GID is mapped or not. Fills *@address. */
void address_from_gid(struct sockaddr_storage *address, const union ibv_gid *gid, uint16_t port);

/** The unspecified address of @family, with @port. */
void address_any(struct sockaddr_storage *address, sa_family_t family, uint16_t port);

/** Copies @from, as many bytes as its family has. */
void address_copy(struct sockaddr_storage *to, const struct sockaddr *from);

#endif
