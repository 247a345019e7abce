/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification (IBTA annex A17.9): a packet that a router marked "congestion experienced" makes a notification
 * (CNP) to the peer that sent it, and one that arrives makes the requester send less at once.
 *
 * All of it under the lock of the QP.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H
#define SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H

#include "wire/link.h"
#include "wire/packet.h"

struct hca_qp;

/** True if @packet, which arrived, was marked on its way. */
static inline bool congestion_marked(const struct packet *packet)
{
	return packet->link && packet->link->routed && (packet->path->traffic_class & 3) == 3;
}

/**
 * The marked @packet arrived at @qp: tells its peer, once in LIMIT_CNP_INTERVAL_US. Of queue pairs without a peer (UD, DC)
 * nobody is told. Uses run_slot(@run), which is free again when it returns.
 */
void congestion_notify(struct hca_qp *qp, const struct packet *packet, struct run *run);

/** A notification arrived at @qp. */
void congestion_notified(struct hca_qp *qp);

#endif
