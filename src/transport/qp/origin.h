/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets for a QP may come from. A connected QP, and a DCI while it has a target, accepts packets of its peer alone (IBTA 9.6):
 * over the link that leads there; over a link that others can write to, from the peer's address to its own; over shared memory,
 * from the process that has the peer's number. Datagrams of other users of the host thus reach no QP whose peer is in this
 * process or behind shared memory, and other processes of the same user reach only QPs that are connected to them. A
 * datagram QP hears everybody who has its Q_Key; a DCT, whoever has its access key, and each initiator where it began.
 *
 * Of the run loop; the QP's lock is held.
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

/**
 * Returns true if @packet came from the peer behind @link, to which @path leads, and over @connection if the link is paired.
 */
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

/** Figures for explanations (EXPLAIN_ORIGIN): the process or the host that sent @packet. Inside an epoch section. */
void origin_of_packet(const struct packet *packet, uint64_t *figures);
/** The same for the peer of @qp, whose lock is held: that of a DCI is its present target. */
void origin_of_peer(const struct hca_qp *qp, uint64_t *figures);
/** Returns the number of the queue pair that sent @packet to @qp, 0 if it is not known. */
uint32_t origin_number(const struct hca_qp *qp, const struct packet *packet);

/** Completes origin_is_peer(). Returns false when it was counted and explained that @packet is not the peer's. */
bool origin_look_again(struct hca_qp *qp, const struct packet *packet);

/** Returns true if @qp may accept @packet. If not, the caller drops it; that was counted and explained. */
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
