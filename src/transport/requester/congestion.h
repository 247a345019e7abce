/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification (IBTA annex A17.9): a packet that a router marked "congestion experienced" causes a
 * notification (CNP) to the peer that sent it. An arriving notification makes the requester send less at once.
 *
 * The lock of the QP covers all of it.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H
#define SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H

#include "wire/link.h"
#include "wire/packet.h"

struct hca_qp;

/** Returns true if @packet, which arrived, was marked on its way. */
static inline bool congestion_marked(const struct packet *packet)
{
	return packet->link && packet->link->routed && (packet->path->traffic_class & 3) == 3;
}

/**
 * Notifies the peer of @qp that @packet arrived with a mark, at most once in LIMIT_CNP_INTERVAL_US. A no-op for QPs
 * without a peer (UD, DC). Uses run_slot(@run), which is free again on return.
 */
void congestion_notify(struct hca_qp *qp, const struct packet *packet, struct run *run);

/** Handles a notification that arrived at @qp. */
void congestion_notified(struct hca_qp *qp);

#endif
