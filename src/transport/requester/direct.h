/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's part of RC READs and WRITEs by direct access to the memory of the peer (wire/link.h, link.access).
 *
 * No packet is sent, so no sequence number is used. The order of the send queue is kept: nothing is in flight when an
 * access begins, and later requests begin after it is done.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H
#define SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H

#include <stdbool.h>

struct hca_qp;
struct packet;
struct wqe;

/**
 * Executes @wqe, a READ or WRITE with the packet @packet, in the memory of the peer and completes it, if the link can
 * do that. Returns false if it has to be sent; then @packet is unchanged. The lock of @qp, which sends over a link of
 * whole messages, is held.
 */
bool direct_execute(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet);

#endif
