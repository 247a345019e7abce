/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes and neighbours of this host, queried as an unprivileged process (connect(2) of a UDP socket, rtnetlink(7)).
 * Every call opens and closes its own sockets. No descriptor stays open, so fork(2), and programs that close
 * descriptors, do no harm. Any thread may call; no lock is taken. Callers disable cancellation.
 */
#ifndef SOFTHCA_HCA_IP_ROUTE_H
#define SOFTHCA_HCA_IP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/gid.h"

/* Hop limit of packets that stay on the host, and default if a route's hop limit cannot be read: Linux's default. */
#define IP_DEFAULT_HOP_LIMIT 64

struct ip_route {
	uint8_t hop_limit;
	bool has_neighbour;     /* packets go to next_hop, and its link address must be known */
	uint32_t ifindex;       /* outgoing interface */
	union ibv_gid next_hop; /* destination, or the router on the way to it */
};

/**
 * Looks up the route from @source to @destination, which is not a group. Returns 0 and fills @route, or -ENETUNREACH,
 * -EHOSTUNREACH or -EACCES (a prohibit route) as the kernel does. If the process may not query routes, as in a sandbox,
 * the result is a route with the default hop limit and without a neighbour.
 */
int ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *route);

/**
 * Returns true if the kernel has a link address for the next hop of @route, or if the kernel does not answer. Sends no
 * packet.
 */
bool ip_neighbour_is_known(const struct ip_route *route);

/**
 * Makes the kernel resolve the next hop: sends an empty datagram to the discard port (9) of @destination, which expires
 * at the first router. Returns at once.
 */
void ip_neighbour_probe(const struct hca_gid *source, const union ibv_gid *destination);

#endif
