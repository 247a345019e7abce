/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are not from the peer. */
#include "transport/qp/origin.h"

#include <endian.h>

#include "observe/counters.h"
#include "transport/qp/drop.h"
#include "wire/routes.h"

/* Returns the name of @link for explanations: eight characters. */
static uint64_t link_chars(const struct link *link)
{
	uint64_t chars = 0;
	const char *name = link ? link->name : "no link";

	memcpy(&chars, name, strnlen(name, sizeof(chars)));
	return chars;
}

#define PREFIX(gid) be64toh((gid)->global.subnet_prefix)
#define INTERFACE(gid) be64toh((gid)->global.interface_id)

/* For a DCI, its current target. */
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

static void put_origin(uint64_t *figures, uint64_t process, const union ibv_gid *host)
{
	figures[0] = process;
	figures[1] = host ? PREFIX(host) : 0;
	figures[2] = host ? INTERFACE(host) : 0;
}

/* @process is 0 if not known. */
static void put_process(uint64_t *figures, pid_t process)
{
	put_origin(figures, process > 0 ? (uint64_t)process : ORIGIN_OTHER_PROCESS, NULL);
}

void origin_of_packet(const struct packet *packet, uint64_t *figures)
{
	const struct link *link = packet->link;
	pid_t process = 0;

	if (!link || link->immediate) {
		put_origin(figures, ORIGIN_THIS_PROCESS, NULL);
	} else if (link->paired) {
		routes->connection_leads_to(packet->connection, packet->source_qpn, &process);
		put_process(figures, process);
	} else {
		put_origin(figures, ORIGIN_HOST, &packet->path->source);
	}
}

void origin_of_peer(const struct hca_qp *qp, uint64_t *figures)
{
	const struct link *link = qp->dci ? qp->dci->target.link : qp->link;
	uint32_t number = qp->dci ? qp->dci->target.number : qp->attr.dest_qp_num;

	if (!link || link->immediate)
		put_origin(figures, ORIGIN_THIS_PROCESS, NULL);
	else if (link->paired)
		put_process(figures, routes->process_of(number));
	else
		put_origin(figures, ORIGIN_HOST, qp->dci ? &qp->dci->target.path.destination : &qp->path.destination);
}

uint32_t origin_number(const struct hca_qp *qp, const struct packet *packet)
{
	const struct link *link = qp->dci ? qp->dci->target.link : qp->link;
	uint32_t number = qp->dci ? qp->dci->target.number : qp->attr.dest_qp_num;
	pid_t process;
	bool is_peer;

	if (packet->source_qpn || !link || packet->link != link)
		return packet->source_qpn;
	/* The peer's connection is unknown until its first packet is accepted. */
	is_peer = link->paired ? routes->connection_leads_to(packet->connection, number, &process)
			       : origin_is(link, qp->dci ? &qp->dci->target.path : &qp->path, 0, packet);
	return is_peer ? number : 0;
}

static struct refusal what_differs(const struct hca_qp *qp, const struct expected *peer, const struct packet *packet,
				   pid_t process)
{
	const union ibv_gid *from = &packet->path->source, *to = &packet->path->destination;

	if (!peer->link || packet->link != peer->link)
		return (struct refusal){RULE_PACKET_LINK,
					{packet->message, qp->number, link_chars(packet->link),
					 link_chars(peer->link)}};
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

	/*
	 * The peer's number may have had no owner when the route was chosen. Only processes of the same user cause this
	 * check.
	 */
	if (packet->link == routes->shm() && !qp->dci)
		qp_route_again(qp);
	peer = expected_by(qp);
	/* First packet over a connection, or over the second one to the same process. */
	if (packet->link == peer.link && peer.link && peer.link->paired && *peer.connection != packet->connection &&
	    routes->connection_leads_to(packet->connection, peer.number, &process))
		*peer.connection = packet->connection;
	if (peer.link && origin_is(peer.link, peer.path, *peer.connection, packet))
		return true;
	counter_add(qp->hca, COUNTER_DROPPED_STRANGER, 1);
	why = what_differs(qp, &peer, packet, process);
	packet_explain_drop(qp->hca, packet, &(struct explain_subject){.qpn = qp->number}, why.rule, why.args,
			    EXPLAIN_ARGS);
	return false;
}
