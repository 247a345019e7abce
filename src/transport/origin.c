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

static struct refusal what_differs(const struct hca_qp *qp, const struct packet *packet)
{
	const struct link *link = qp->dci ? qp->dci->target.link : qp->link;
	const struct packet_path *path = qp->dci ? &qp->dci->target.path : &qp->path;
	const union ibv_gid *from = &packet->path->source, *to = &packet->path->destination;

	if (packet->link != link)
		return (struct refusal){RULE_PACKET_LINK,
					{packet->message, qp->number, name_of(packet->link), name_of(link)}};
	if (!same_gid(from, &path->destination))
		return (struct refusal){RULE_PACKET_SOURCE,
					{packet->message, qp->number, PREFIX(from), INTERFACE(from),
					 PREFIX(&path->destination), INTERFACE(&path->destination)}};
	return (struct refusal){RULE_PACKET_TARGET,
				{packet->message, qp->number, PREFIX(to), INTERFACE(to), PREFIX(&path->source),
				 INTERFACE(&path->source)}};
}

bool origin_look_again(struct hca_qp *qp, const struct packet *packet)
{
	struct refusal why;

	/* The peer's number was nobody's when the route was chosen. Only processes of the same user make this look again. */
	if (packet->link == routes->shm() && !qp->dci && qp_route_again(qp) && origin_is(qp->link, &qp->path, packet))
		return true;
	counter_add(qp->hca, COUNTER_DROPPED_STRANGER, 1);
	why = what_differs(qp, packet);
	packet_explain_drop(qp->hca, packet, &(struct explain_subject){.qpn = qp->number}, &why);
	return false;
}
