/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification (IBTA annex A17.9): a packet that a router marked "congestion experienced" causes a
 * notification (CNP) to its sender, whose requester then sends less at once. The lock of the QP covers all of it.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H
#define SOFTHCA_TRANSPORT_REQUESTER_CONGESTION_H

#include "wire/link.h"
#include "wire/packet.h"

struct hca_qp;

static inline bool congestion_marked(const struct packet *packet)
{
	return packet->link && packet->link->routed && (packet->path->traffic_class & 3) == 3;
}

/**
 * Notifies the peer if @packet is marked, at most once in LIMIT_CNP_INTERVAL_US. A no-op for UD and DC. Uses
 * run_slot(@run).
 */
void congestion_notify(struct hca_qp *qp, const struct packet *packet, struct run *run);

void congestion_notified(struct hca_qp *qp);

#endif
