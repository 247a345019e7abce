/* SPDX-License-Identifier: BSD-2-Clause */
/* See ends.h. */
#include "process/ends.h"

#include "core/epoch.h"
#include "hca/hca.h"
#include "link/host/host.h"
#include "process/route.h"

bool end_is_on_other_host(const struct hca *hca, const union ibv_gid *gid)
{
	return !hca->link && !device_routes.is_near(hca, gid);
}

static bool is_in_shared_memory(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
{
	return !hca->link && (hca->settings.link == LINK_AUTO || hca->settings.link == LINK_SHM) &&
	       device_routes.is_near(hca, gid) && !host_owns(qpn);
}

/* Two processes may have two connections to each other, and prefer different ones: shows @attr over both. */
static void show_to_process(const struct host_peer *peer, const struct shm_end_attr *attr)
{
	for (const struct host_peer *host = host_peers(); host; host = host_next(host))
		if (host == peer || (peer->pid && host->pid == peer->pid))
			shm_end_show(host, attr);
}

void end_show(const struct hca *hca, const union ibv_gid *gid, const struct shm_end_attr *attr)
{
	const struct host_peer *peer;

	if (!is_in_shared_memory(hca, gid, attr->peer))
		return;
	epoch_enter();
	peer = host_peer_of(attr->peer);
	if (peer)
		show_to_process(peer, attr);
	epoch_leave();
}

void end_hide(uint32_t qpn)
{
	epoch_enter();
	for (const struct host_peer *host = host_peers(); host; host = host_next(host))
		shm_end_hide(host, qpn);
	epoch_leave();
}

bool end_find(uint32_t qpn, uint32_t peer, struct shm_end_attr *attr)
{
	bool found = false;

	epoch_enter();
	for (const struct host_peer *host = host_peers(); host && !found; host = host_next(host))
		found = shm_end_find(host, qpn, peer, attr);
	epoch_leave();
	return found;
}
