/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are not of the peer, see origin.h. */
#include "transport/origin.h"

#include <endian.h>

#include "device/counters.h"
#include "transport/drop.h"
#include "wire/routes.h"

/* As explanations take it: up to eight characters. */
static uint64_t name_of(const struct link *link)
{
	uint64_t chars = 0;
	const char *name = link ? link->name : "no link";

	memcpy(&chars, name, strnlen(name, sizeof(chars)));
	return chars;
}

#define PREFIX(gid) be64toh((gid)->global.subnet_prefix)
#define INTERFACE(gid) be64toh((gid)->global.interface_id)

/* Which peer a QP accepts packets from: of a DCI, its target. */
struct expected {
	const struct link *link;
	const struct packet_path *path;
	uint32_t *connection;
	uint32_t number;
};

static struct expected expected_by(struct hca_qp *qp)
{
	if (qp->dci)
		return (struct expected){qp->dci->target.link, &qp->dci->target.path, &qp->dci->target.connection,
					 qp->dci->target.number};
	return (struct expected){qp->link, &qp->path, &qp->connection, qp->attr.dest_qp_num};
}

static struct refusal what_differs(const struct hca_qp *qp, const struct expected *peer, const struct packet *packet,
				   pid_t process)
{
	const union ibv_gid *from = &packet->path->source, *to = &packet->path->destination;

	if (!peer->link || packet->link != peer->link)
		return (struct refusal){RULE_PACKET_LINK,
					{packet->message, qp->number, name_of(packet->link), name_of(peer->link)}};
	if (peer->link->paired)
		return (struct refusal){RULE_PACKET_PROCESS,
					{packet->message, qp->number, (uint64_t)process, peer->number}};
	if (!same_gid(from, &peer->path->destination))
		return (struct refusal){RULE_PACKET_SOURCE,
					{packet->message, qp->number, PREFIX(from), INTERFACE(from),
					 PREFIX(&peer->path->destination), INTERFACE(&peer->path->destination)}};
	return (struct refusal){RULE_PACKET_TARGET,
				{packet->message, qp->number, PREFIX(to), INTERFACE(to), PREFIX(&peer->path->source),
				 INTERFACE(&peer->path->source)}};
}

bool origin_look_again(struct hca_qp *qp, const struct packet *packet)
{
	struct expected peer;
	struct refusal why;
	pid_t process = 0;

	/* The peer's number was nobody's when the route was chosen. Only processes of the same user make this look again. */
	if (packet->link == routes->shm() && !qp->dci)
		qp_route_again(qp);
	peer = expected_by(qp);
	/* The first packet over a connection, or over the second one to the same process. */
	if (packet->link == peer.link && peer.link && peer.link->paired && *peer.connection != packet->connection &&
	    routes->connection_leads_to(packet->connection, peer.number, &process))
		*peer.connection = packet->connection;
	if (peer.link && origin_is(peer.link, peer.path, *peer.connection, packet))
		return true;
	counter_add(qp->hca, COUNTER_DROPPED_STRANGER, 1);
	why = what_differs(qp, &peer, packet, process);
	packet_explain_drop(qp->hca, packet, &(struct explain_subject){.qpn = qp->number}, &why);
	return false;
}
