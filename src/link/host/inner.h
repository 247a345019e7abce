/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses inside a host of GIDs that no interface has as an address: the link-local one of an interface without IPv6, all of
 * RoCE v1. They travel as 127.83.0.0/16 with the number of their entry in the GID table. Any address of 127.0.0.0/8 is one of the
 * loopback interface, and the kernel lets no such address in from outside.
 *
 * The number means an entry of the table of the process that sent. Tables of processes differ if their SOFTHCA_GIDS do. The process that
 * takes a datagram for another one out of the socket hands these addresses on as they are, and the one that it is for
 * resolves them. Pure functions; any thread.
 */
#ifndef SOFTHCA_LINK_HOST_INNER_H
#define SOFTHCA_LINK_HOST_INNER_H

struct hca;
struct packet_path;

/** Puts inner addresses in the place of the GIDs of @path, if both are of @hca's table and the kernel has not both as addresses. */
void inner_path_make(const struct hca *hca, struct packet_path *path);

/** The reverse: GIDs and the type of entries of @hca's table. Leaves a path alone of which not both ends are such addresses. */
void inner_path_resolve(const struct hca *hca, struct packet_path *path);

#endif
