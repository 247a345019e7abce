/* SPDX-License-Identifier: BSD-2-Clause */
/* The link for each destination; see wire/routes.h. */
#include <errno.h>
#include <string.h>

#include "hca/hca.h"
#include "process/route.h"
#include "link/host/host.h"
#include "link/local/local.h"
#include "link/shm/shm.h"
#include "cm_host/handed.h"
#include "link/udp/groups.h"
#include "link/udp/udp.h"
#include "wire/mad.h"
#include "wire/packet.h"
#include "wire/roce.h"

static bool on_this_host(const struct hca *hca, const union ibv_gid *gid)
{
	for (size_t i = 0; i < hca->gid_count; i++)
		if (!memcmp(&hca->gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/* Returns false if the only interface is the loopback interface (hca/gid.h). */
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
	 * A number that no process has counts as a QP that does not exist. Another failure to connect may be temporary:
	 * the shm link tries again with each packet.
	 */
	return host_peer_of(qpn) || errno != ENOENT ? link_shm() : link_local();
}

static bool link_sees_process(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn)
{
	return on_this_host(hca, gid) && !host_owns(qpn) && !host_slot_is_vacant(qpn);
}

/* ---- multicast -------------------------------------------------------------------------------------------------- */

static bool groups_leave_process(const struct hca *hca)
{
	return !hca->link && (hca->settings.link == LINK_UDP || hca->settings.link == LINK_AUTO);
}

/*
 * Sends to members of this process by a call, to others by UDP (link/udp/DESIGN.md). If a link is full, the datagram is
 * lost. Sending consumes the payload's stream, hence the copy.
 */
static enum link_result send_to_group(struct hca *hca, struct run *run)
{
	struct packet packet = *run_slot(run);

	link_udp()->send(hca, run);
	*run_slot(run) = packet;
	return link_local()->send(hca, run);
}

static const struct link *link_group(const struct hca *hca, const struct packet_path *path)
{
	static const struct link group = {.name = "group", .immediate = true, .send = send_to_group};

	return groups_leave_process(hca) && udp_reaches_group(path) ? &group : link_local();
}

static void link_join(struct hca *hca, const union ibv_gid *group)
{
	if (groups_leave_process(hca))
		udp_join(hca, group);
}

static void link_leave_group(struct hca *hca, const union ibv_gid *group)
{
	if (groups_leave_process(hca))
		udp_leave(hca, group);
}

/* ---- datagrams of the connection manager ----------------------------------------------------------------------- */

/* Returns true for a datagram to this process: it uses the local link even if messages do not. */
static bool is_of_this_process(const struct mad_address *address)
{
	return address->addressee == MAD_FOR_SERVICE ? host_service_listens(address->service) : host_owns(address->qpn);
}

/*
 * Sets *@peer to the process of this host for @address, which is not for all processes, or to NULL for this process.
 * Returns 0 or a negative errno.
 */
static int process_for(const struct mad_address *address, struct host_peer **peer)
{
	*peer = NULL;
	if (is_of_this_process(address))
		return 0;
	*peer = host_peer_for(address);
	return *peer ? 0 : -errno;
}

/* Sets @links for @address on this host. Returns their number or a negative errno. */
static int route_to_process(const struct hca *hca, const struct mad_address *address, const struct link **links)
{
	bool alone = hca->settings.link == LINK_LOCAL;
	struct host_peer *peer;
	int error;

	links[0] = link_local();
	links[1] = link_shm();
	if (address->addressee == MAD_FOR_ALL)
		return alone ? 1 : 2;
	if (alone)
		return address->addressee == MAD_FOR_ID || host_service_listens(address->service) ? 1 : -ENOENT;
	error = process_for(address, &peer);
	if (peer)
		links[0] = link_shm();
	return error ? error : 1;
}

static int route_to_manager(struct hca *hca, const union ibv_gid *gid, const uint8_t *mad, const struct link **links)
{
	const struct mad_address address = mad_address(mad);
	bool near = on_this_host(hca, gid);

	if (hca->link || hca->settings.link == LINK_UDP || !near) {
		/* For other hosts the route does not depend on the QP number. */
		links[0] = link_route(hca, gid, GSI_QPN);
		return links[0] ? 1 : -ENETUNREACH;
	}
	return route_to_process(hca, &address, links);
}

static void route_hand_to(struct host_peer *peer, const struct packet_path *path, const uint8_t *mad)
{
	const struct packet packet = {
		.transport = IBV_QPT_UD,
		.message = MESSAGE_SEND,
		.destination_qpn = GSI_QPN,
		.source_qpn = GSI_QPN,
		.qkey = GSI_QKEY,
	};
	uint8_t frame[ROCE_MOST_HEADERS + MAD_BYTES];
	uint32_t headers = roce_headers_write(frame, &packet, 0, PLACE_ONLY, MAD_BYTES);

	memcpy(frame + headers, mad, MAD_BYTES);
	host_carrier->forward_to(peer, path, frame, headers + MAD_BYTES);
}

/* Forwards a datagram. This process is connected to any process to which it has sent a request. */
static bool route_hand_on(const struct packet_path *path, const uint8_t *mad)
{
	const struct mad_address address = mad_address(mad);
	struct host_peer *peer;

	if (address.addressee == MAD_FOR_ALL) {
		for (peer = host_peers(); peer; peer = host_next(peer))
			route_hand_to(peer, path, mad);
		return false;
	}
	if (process_for(&address, &peer) || !peer)
		return false;
	handed_note(the_registry.handed, path, mad, peer->serial);
	route_hand_to(peer, path, mad);
	return true;
}

static bool route_is_known(uint32_t qpn)
{
	return host_peer_known(qpn);
}

static bool route_was_known(uint32_t qpn)
{
	return host_peer_was_known(qpn);
}

static pid_t route_process(uint32_t qpn)
{
	const struct host_peer *peer = host_peer_known(qpn);

	return peer ? peer->pid : 0;
}

static uint32_t route_connection(uint32_t qpn)
{
	const struct host_peer *peer = host_peer_of(qpn);

	return peer ? peer->serial : 0;
}

const struct routes device_routes = {.route = link_route,
				     .sees_process = link_sees_process,
				     .listen = link_listen,
				     .group = link_group,
				     .join = link_join,
				     .leave = link_leave_group,
				     .local = link_local,
				     .shm = link_shm,
				     .udp = link_udp,
				     .owns = host_owns,
				     .accept = host_accept,
				     .is_known = route_is_known,
				     .was_known = route_was_known,
				     .process_of = route_process,
				     .connection_to = route_connection,
				     .connection_leads_to = host_connection_leads_to,
				     .is_vacant = host_slot_is_vacant,
				     .is_near = on_this_host,
				     .to_manager = route_to_manager,
				     .listens = host_service_listens,
				     .hand_on = route_hand_on};

static int qp_numbers_more(uint32_t *first, uint32_t *limit)
{
	int error = host_claim_slot(first);

	*limit = error ? *limit : *first + (1u << HOST_SLOT_BITS);
	return error;
}

const struct id_source qp_numbers = {.more = qp_numbers_more, .owns = host_owns};
