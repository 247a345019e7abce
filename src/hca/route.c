/* SPDX-License-Identifier: BSD-2-Clause */
/* Which link leads where, and sending past the filters; see link.h. */
#include <errno.h>
#include <string.h>

#include "transport/qp.h"
#include "filter/filter.h"
#include "link/host/host.h"
#include "wire/link.h"
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

void link_listen(struct hca *hca)
{
	if (!hca->link && (hca->settings.link == LINK_UDP || (hca->settings.link == LINK_AUTO && has_network(hca))))
		udp_begin(hca);
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

bool link_sees_process(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
{
	return on_this_host(hca, gid) && !host_owns(qpn) && !host_slot_is_vacant(qpn);
}

enum link_result link_send(struct hca *hca, struct run *run)
{
	run->full = &link_common_queue;
	if (__builtin_expect(hca->filters != NULL, 0))
		return filter_send(hca, run);
	if (run_slot(run)->link != link_local() && run_slot(run)->link != link_udp())
		udp_let_go();
	return run_slot(run)->link->send(hca, run);
}

enum link_result link_send_or_wait(struct hca_qp *qp, struct run *run, struct link_waiter *waiter, bool requester)
{
	if (link_send(qp->hca, run) == LINK_SENT)
		return LINK_SENT;
	/* Room that was made before it waited would else be missed. */
	link_enqueue(run->full, waiter, qp, requester);
	if (link_send(qp->hca, run) == LINK_BUSY)
		return LINK_BUSY;
	link_dequeue(waiter);
	return LINK_SENT;
}
