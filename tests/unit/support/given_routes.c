/* SPDX-License-Identifier: BSD-2-Clause */
/* See given_routes.h. */
#include "given_routes.h"

#include "hca/ip_route.h"

struct given_routes given_routes;

int __real_ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *found);
int __wrap_ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *found);
int __wrap_ip_route_find(const struct hca_gid *source, const union ibv_gid *destination, struct ip_route *found)
{
	if (!given_routes.replaced)
		return __real_ip_route_find(source, destination, found);
	*found = (struct ip_route){
		.hop_limit = 64, .has_neighbour = true, .ifindex = 1, .next_hop = gid_of_ipv4(0xc0000201)};
	return given_routes.error;
}

bool __real_ip_neighbour_is_known(const struct ip_route *found);
bool __wrap_ip_neighbour_is_known(const struct ip_route *found);
bool __wrap_ip_neighbour_is_known(const struct ip_route *found)
{
	return !given_routes.replaced && __real_ip_neighbour_is_known(found);
}
