/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which packets a QP accepts. A connected QP, or a DCI with a target, accepts only its peer's (IBTA 9.6): over
 * the link to the peer; over a link that any process can write to, from the peer's address to its own; over shared
 * memory, from the process that owns the peer's number. A datagram QP accepts packets with its Q_Key from any sender; a
 * DCT those with its access key, from each initiator over the link of its first packet. See transport/DESIGN.md.
 *
 * Called by the run loop. The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_QP_ORIGIN_H
#define SOFTHCA_TRANSPORT_QP_ORIGIN_H

#include <string.h>

#include "transport/qp/dci.h"
#include "transport/qp/qp.h"
#include "transport/qp/transport.h"
#include "wire/link.h"

static inline bool same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/** Returns true if @packet came from the other end of @path over @link, and @connection if it is paired. */
static inline bool origin_is(const struct link *link, const struct packet_path *path, uint32_t connection,
			     const struct packet *packet)
{
	if (packet->link != link)
		return false;
	if (link->shared)
		return same_gid(&packet->path->source, &path->destination) &&
		       same_gid(&packet->path->destination, &path->source);
	return !link->paired || packet->connection == connection;
}

/** Stores the process or host that sent @packet in @figures (EXPLAIN_ORIGIN). Inside an epoch section. */
void origin_of_packet(const struct packet *packet, uint64_t *figures);
/** As origin_of_packet(), for the peer of @qp or its current target. The lock of @qp is held. */
void origin_of_peer(const struct hca_qp *qp, uint64_t *figures);
/** Returns the number of the queue pair that sent @packet to @qp, or 0. */
uint32_t origin_number(const struct hca_qp *qp, const struct packet *packet);

/** Second part of origin_is_peer(): counts and explains refusals. */
bool origin_look_again(struct hca_qp *qp, const struct packet *packet);

/** Returns true if @qp may accept @packet. Otherwise it was counted and explained, and the caller drops it. */
static inline bool origin_is_peer(struct hca_qp *qp, const struct packet *packet)
{
	if (qp->transport->any_peer)
		return true;
	if (__builtin_expect(qp->dci ? origin_is(qp->dci->target.link, &qp->dci->target.path,
						 qp->dci->target.connection, packet)
				     : origin_is(qp->link, &qp->path, qp->connection, packet),
			     1))
		return true;
	return origin_look_again(qp, packet);
}

#endif
