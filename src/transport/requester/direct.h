/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE of RC without the peer: what the requester has to do with it (wire/link.h, link.access).
 *
 * No packet is sent, so no sequence number is used up. That keeps the order of the send queue since nothing of it is in flight:
 * all before it has arrived, and what comes behind it begins when it is done.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H
#define SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H

#include <stdbool.h>

struct hca_qp;
struct packet;
struct wqe;

/**
 * Executes @wqe, a READ or WRITE whose packet is @packet, and completes it, if the link can do so in the memory of the peer. False: it
 * is to be sent, with @packet as it was. The lock of @qp, which sends by a link of whole messages, is held.
 */
bool direct_execute(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet);

#endif
