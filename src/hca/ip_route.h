/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes and neighbours of this host, queried without privileges (connect(2) of a UDP socket, rtnetlink(7)). No
 * descriptor stays open, because of fork(2) and programs that close them. Any thread; takes no lock. Callers disable
 * cancellation.
 */
#ifndef SOFTHCA_HCA_IP_ROUTE_H
#define SOFTHCA_HCA_IP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/gid.h"

/* Linux's default, also within the host. */
#define IP_DEFAULT_HOP_LIMIT 64

struct ip_route {
	uint8_t hop_limit;
	bool has_neighbour;     /* packets go to next_hop, with a link address */
	uint32_t ifindex;       /* outgoing */
	union ibv_gid next_hop; /* destination, or the router towards it */
};

/**
 * Looks up the route to @destination, not a group. Returns 0, or -ENETUNREACH, -EHOSTUNREACH or -EACCES (a prohibit
 * route) as the kernel does. A process that may not query routes, as in a sandbox, gets the default hop limit and no
 * neighbour.
 */
int ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *route);

/** Returns true if the kernel has a link address for the next hop of @route, or does not answer. Sends no packet. */
bool ip_neighbour_is_known(const struct ip_route *route);

/**
 * Makes the kernel resolve the next hop by an empty datagram to the discard port (9) of @destination, which expires at
 * the first router. Does not wait.
 */
void ip_neighbour_probe(const struct hca_gid *source, const union ibv_gid *destination);

#endif
