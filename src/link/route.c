/* SPDX-License-Identifier: BSD-2-Clause */
/* Which link leads where, and sending past the filters; see link.h. */
#include <string.h>

#include "hca/device.h"
#include "link/filter.h"
#include "link/host.h"
#include "link/link.h"

static bool on_this_host(const struct hca *hca, const union ibv_gid *gid)
{
	for (size_t i = 0; i < hca->gid_count; i++)
		if (!memcmp(&hca->gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

const struct link *link_route(struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
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
		return link_udp();
	case LINK_AUTO:
		break;
	}
	if (!near)
		return link_udp();
	/* A number that is nobody's is as far away as any other QP that does not exist. */
	return host_owns(qpn) || !host_peer_of(qpn) ? link_local() : link_shm();
}

enum link_result link_send(struct hca *hca, struct run *run)
{
	if (__builtin_expect(hca->filters != NULL, 0))
		return filter_send(hca, run);
	return run_slot(run)->link->send(hca, run);
}
