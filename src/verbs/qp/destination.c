/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves destinations, see destination.h. */
#include "verbs/qp/destination.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cancellation.h"
#include "core/limits.h"
#include "hca/ip_route.h"
#include "explain/explain.h"

/* Values chosen for speed. */
enum {
	/* ns before the first check whether a neighbour has answered; each later sleep is twice as long */
	NEIGHBOUR_NAP_NS = 250000,
	/* ns: maximum of these sleeps */
	NEIGHBOUR_NAP_MOST_NS = 8000000,
	/* ms during which a neighbour that did not answer is waited for only briefly */
	NEIGHBOUR_SILENCE_MS = 3000,
	/* ms of that brief wait: a neighbour on the link answers within one */
	NEIGHBOUR_AGAIN_MS = 5,
	/*
	 * ns for which a route that was found is used again: a program that makes thousands of connections asks for the
	 * same one, with some twenty system calls
	 */
	ROUTE_AGAIN_NS = 10000000,
};

#define MS UINT64_C(1000000)

/*
 * Neighbours that did not answer: without this list, each of thousands of QPs to one of them would wait a second. An
 * entry is a hash of interface and address, and the millisecond at which it expires. Atomic, without a lock.
 */
static uint64_t silent[8];

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

static uint64_t destination_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

/* FNV-1a. */
static uint32_t route_hash(const struct ip_route *route)
{
	uint32_t hash = 2166136261u ^ route->ifindex;

	for (size_t i = 0; i < sizeof(route->next_hop.raw); i++)
		hash = (hash ^ route->next_hop.raw[i]) * 16777619u;
	return hash;
}

static uint64_t *silence_entry(uint32_t hash)
{
	return &silent[hash % (sizeof(silent) / sizeof(silent[0]))];
}

static bool was_silent(uint32_t hash)
{
	uint64_t entry = __atomic_load_n(silence_entry(hash), __ATOMIC_RELAXED);

	return entry >> 32 == hash && (int32_t)((uint32_t)entry - (uint32_t)(destination_now_ns() / MS)) > 0;
}

static void note_silent(uint32_t hash)
{
	uint32_t until = (uint32_t)(destination_now_ns() / MS) + NEIGHBOUR_SILENCE_MS;

	__atomic_store_n(silence_entry(hash), (uint64_t)hash << 32 | until, __ATOMIC_RELAXED);
}

/* Polls for @ms, often at first: a present neighbour answers within a millisecond. */
static bool answers_within(const struct ip_route *route, uint64_t ms)
{
	uint64_t deadline = destination_now_ns() + ms * MS;
	struct timespec nap = {.tv_nsec = NEIGHBOUR_NAP_NS};

	do {
		nanosleep(&nap, NULL);
		if (ip_neighbour_is_known(route))
			return true;
		if (nap.tv_nsec < NEIGHBOUR_NAP_MOST_NS)
			nap.tv_nsec *= 2;
	} while (destination_now_ns() < deadline);
	return false;
}

static bool neighbour_answers(const struct hca_gid *source, const union ibv_gid *destination,
			      const struct ip_route *route)
{
	uint32_t hash = route_hash(route);
	bool again;

	if (!route->has_neighbour || ip_neighbour_is_known(route))
		return true;
	again = was_silent(hash);
	ip_neighbour_probe(source, destination);
	if (answers_within(route, again ? NEIGHBOUR_AGAIN_MS : LIMIT_NEIGHBOUR_WAIT_MS))
		return true;
	if (!again)
		note_silent(hash);
	return false;
}

/* ---- destinations ------------------------------------------------------------------------------------------------ */

static bool gid_is_local(const struct hca_gid *gids, size_t count, const union ibv_gid *gid)
{
	for (size_t i = 0; i < count; i++)
		if (!memcmp(&gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/*
 * Returns false for links within the host, and for a link-local GID of RoCE v1, whose link address the kernel computes
 * without a route.
 */
static bool has_route(struct hca *hca, const struct hca_gid *source, const union ibv_gid *destination)
{
	enum setting_LINK link = hca_settings(hca)->link;

	if (link == LINK_LOCAL || link == LINK_SHM)
		return false;
	return source->type == IBV_GID_TYPE_ROCE_V2 || !gid_is_link_local(destination);
}

static bool families_differ(const struct hca_gid *source, const union ibv_gid *destination)
{
	static const union ibv_gid zero;

	return !memcmp(destination, &zero, sizeof(zero)) || gid_is_ipv4(&source->gid) != gid_is_ipv4(destination);
}

/* A route that was found, with a neighbour that answers. */
struct found_route {
	union ibv_gid source, destination;
	uint32_t ifindex; /* of the source */
	uint8_t hop_limit;
	uint64_t until_ns; /* CLOCK_MONOTONIC; until when it is used again */
};

/*
 * The last one, or NULL while a thread uses it; atomic. Not one for each thread, because the room for variables of
 * threads in a library that a program loads late is small (dlopen(3)); without a lock, because of fork(2).
 */
static struct found_route *latest_route;

static bool route_is(const struct found_route *route, const struct hca_gid *source, const union ibv_gid *destination)
{
	return source->ifindex == route->ifindex && !memcmp(&source->gid, &route->source, sizeof(route->source)) &&
	       !memcmp(destination, &route->destination, sizeof(route->destination));
}

static bool route_was_found(const struct hca_gid *source, const union ibv_gid *destination, uint8_t *hop_limit)
{
	struct found_route *latest = __atomic_exchange_n(&latest_route, NULL, __ATOMIC_ACQUIRE);
	bool found = latest && destination_now_ns() < latest->until_ns && route_is(latest, source, destination);

	if (found)
		*hop_limit = latest->hop_limit;
	free(__atomic_exchange_n(&latest_route, latest, __ATOMIC_ACQ_REL));
	return found;
}

static void route_note_found(const struct hca_gid *source, const union ibv_gid *destination, uint8_t hop_limit)
{
	struct found_route *latest = malloc(sizeof(*latest));

	if (!latest)
		return;
	*latest = (struct found_route){.source = source->gid,
				       .destination = *destination,
				       .ifindex = source->ifindex,
				       .hop_limit = hop_limit,
				       .until_ns = destination_now_ns() + ROUTE_AGAIN_NS};
	free(__atomic_exchange_n(&latest_route, latest, __ATOMIC_ACQ_REL));
}

static int route_resolve(struct hca *hca, const char *call, uint32_t qp_num, const struct hca_gid *source,
			 const union ibv_gid *destination, uint8_t *hop_limit)
{
	uint64_t high = be64toh(destination->global.subnet_prefix), low = be64toh(destination->global.interface_id);
	struct ip_route route;
	int error;

	if (route_was_found(source, destination, hop_limit))
		return 0;
	error = -ip_route_find(source, destination, &route);
	if (error)
		return refuse_on_qp(hca, call, qp_num, error, RULE_DESTINATION_NO_ROUTE, FIGURES(high, low, error));
	*hop_limit = route.hop_limit;
	if (neighbour_answers(source, destination, &route)) {
		route_note_found(source, destination, route.hop_limit);
		return 0;
	}
	return refuse_on_qp(hca, call, qp_num, ETIMEDOUT, RULE_DESTINATION_SILENT,
			    FIGURES(high, low, be64toh(route.next_hop.global.subnet_prefix),
				    be64toh(route.next_hop.global.interface_id)));
}

int destination_resolve(struct hca *hca, const char *call, uint32_t qp_num, const struct ibv_ah_attr *attr,
			uint8_t *hop_limit)
{
	WITHOUT_CANCELLATION;
	const union ibv_gid *destination = &attr->grh.dgid;
	size_t count;
	const struct hca_gid *gids = hca_gids(hca, &count), *source = &gids[attr->grh.sgid_index];

	*hop_limit = IP_DEFAULT_HOP_LIMIT;
	if (!attr->is_global || attr->grh.sgid_index >= count || gid_is_local(gids, count, destination) ||
	    gid_is_multicast(destination))
		return 0;
	if (families_differ(source, destination))
		return refuse_on_qp(
			hca, call, qp_num, EINVAL, RULE_DESTINATION_FAMILY,
			FIGURES(be64toh(destination->global.subnet_prefix), be64toh(destination->global.interface_id),
				be64toh(source->gid.global.subnet_prefix), be64toh(source->gid.global.interface_id)));
	return has_route(hca, source, destination) ? route_resolve(hca, call, qp_num, source, destination, hop_limit)
						   : 0;
}
