/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets for a QP may come from. A connected QP, and a DCI while it has a target, hears its peer alone (IBTA 9.6): over
 * the link that leads there, and, over a link that others can write to as well, from the peer's address to its own. What
 * another user of the host sends as a datagram thus reaches no QP whose peer is in this process or behind shared memory. A
 * datagram QP hears everybody who has its Q_Key; a DCT, whoever has its access key, and each initiator where it began.
 *
 * Of the run loop; the QP's lock is held.
 */
#ifndef SOFTHCA_TRANSPORT_ORIGIN_H
#define SOFTHCA_TRANSPORT_ORIGIN_H

#include <string.h>

#include "transport/qp.h"
#include "wire/link.h"
#include "transport/dci.h"
#include "transport/transport.h"

static inline bool same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/** True if @packet took the way from the peer behind @link, to which @path leads. */
static inline bool origin_is(const struct link *link, const struct packet_path *path, const struct packet *packet)
{
	return packet->link == link && (!link->shared || (same_gid(&packet->path->source, &path->destination) &&
							  same_gid(&packet->path->destination, &path->source)));
}

/** The rest of origin_is_peer(): false when it was counted and explained that @packet is not the peer's. */
bool origin_look_again(struct hca_qp *qp, const struct packet *packet);

/** True if @qp may hear @packet. If not, it is to be dropped; that was counted and explained. */
static inline bool origin_is_peer(struct hca_qp *qp, const struct packet *packet)
{
	if (qp->transport->hears_all)
		return true;
	if (__builtin_expect(qp->dci ? origin_is(qp->dci->target.link, &qp->dci->target.path, packet)
				     : origin_is(qp->link, &qp->path, packet),
			     1))
		return true;
	return origin_look_again(qp, packet);
}

#endif
