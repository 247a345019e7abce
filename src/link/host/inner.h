/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses within a host for GIDs that are not the address of an interface: the link-local one of an interface without
 * IPv6, and all of RoCE v1. On the wire they are 127.83.0.0/16 with the number of their entry in the GID table. All
 * addresses of 127.0.0.0/8 belong to the loopback interface, and the kernel accepts none of them from outside.
 *
 * The number refers to the table of the sending process. Tables of processes differ if their SOFTHCA_GIDS do. A process
 * that receives a datagram for another one forwards these addresses unchanged, and the destination process resolves
 * them. Pure functions; any thread.
 */
#ifndef SOFTHCA_LINK_HOST_INNER_H
#define SOFTHCA_LINK_HOST_INNER_H

struct hca;
struct packet_path;

/**
 * Replaces the GIDs of @path by inner addresses, if both are in @hca's table and not both are addresses that the kernel
 * has.
 */
void inner_path_make(const struct hca *hca, struct packet_path *path);

/**
 * Replaces inner addresses by the GIDs and the type of entries of @hca's table. Does nothing unless both ends are inner
 * addresses.
 */
void inner_path_resolve(const struct hca *hca, struct packet_path *path);

#endif
