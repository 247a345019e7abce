/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE of RC by direct access to the memory of the peer (wire/link.h, link.access): the part of the
 * requester.
 *
 * No packet is sent, so no sequence number is used up. The order of the send queue is kept, since nothing is in
 * flight: everything before has arrived, and later requests begin when this one is done.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H
#define SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H

#include <stdbool.h>

struct hca_qp;
struct packet;
struct wqe;

/**
 * Executes @wqe, a READ or WRITE whose packet is @packet, in the memory of the peer, and completes it, if the link
 * can. Returns false if it has to be sent; then @packet is unchanged. The lock of @qp, which sends over a link of
 * whole messages, is held.
 */
bool direct_execute(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet);

#endif
