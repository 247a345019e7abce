/* SPDX-License-Identifier: BSD-2-Clause */
/* Which link leads where; see wire/routes.h. */
#include <errno.h>
#include <string.h>

#include "device/device.h"
#include "hca/route.h"
#include "link/host/host.h"
#include "link/local/local.h"
#include "link/shm/shm.h"
#include "link/udp/udp.h"

static bool on_this_host(const struct hca *hca, const union ibv_gid *gid)
{
	for (size_t i = 0; i < hca->gid_count; i++)
		if (!memcmp(&hca->gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* With nothing but the loopback interface (device/gid.h) there are no other hosts. */
static bool has_network(const struct hca *hca)
{
	return strcmp(hca->gids[0].netdev, "lo") != 0;
}

static const struct link *by_udp(struct hca *hca)
{
	udp_begin(hca);
	return link_udp();
}

static void link_listen(struct hca *hca)
{
	if (!hca->link && (hca->settings.link == LINK_UDP || (hca->settings.link == LINK_AUTO && has_network(hca))))
		udp_begin(hca);
}

static const struct link *link_route(struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
{
	bool near = on_this_host(hca, gid);

	if (hca->link)
		return near ? hca->link : NULL;
	switch (hca->settings.link) {
	case LINK_LOCAL:
		return near ? link_local() : NULL;
	case LINK_SHM:
		return near ? link_shm() : NULL;
	case LINK_UDP:
		return by_udp(hca);
	case LINK_AUTO:
		break;
	}
	if (!near)
		return has_network(hca) ? by_udp(hca) : NULL;
	if (host_owns(qpn))
		return link_local();
	/*
	 * A number that is nobody's is as far away as any other QP that does not exist. Where the connection failed for
	 * another reason, that may pass: the shm link tries again with each packet.
	 */
	return host_peer_of(qpn) || errno != ENOENT ? link_shm() : link_local();
}

static bool link_sees_process(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
{
	return on_this_host(hca, gid) && !host_owns(qpn) && !host_slot_is_vacant(qpn);
}

static bool is_known(uint32_t qpn)
{
	return host_peer_known(qpn);
}

static pid_t process_of(uint32_t qpn)
{
	const struct host_peer *peer = host_peer_known(qpn);

	return peer ? peer->pid : 0;
}

const struct routes device_routes = {.route = link_route,
				     .sees_process = link_sees_process,
				     .listen = link_listen,
				     .local = link_local,
				     .shm = link_shm,
				     .udp = link_udp,
				     .owns = host_owns,
				     .accept = host_accept,
				     .is_known = is_known,
				     .process_of = process_of,
				     .is_vacant = host_slot_is_vacant,
				     .withdraw = shm_withdraw};

static int more_numbers(uint32_t *first, uint32_t *limit)
{
	int error = host_claim_slot(first);

	*limit = error ? *limit : *first + (1u << HOST_SLOT_BITS);
	return error;
}

const struct id_source qp_numbers = {.more = more_numbers, .owns = host_owns};
