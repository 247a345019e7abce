/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC READs and WRITEs by direct access to the peer's memory (wire/link.h, link.access), without packets or sequence
 * numbers. To keep the order of the send queue, nothing is in flight when an access begins.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H
#define SOFTHCA_TRANSPORT_REQUESTER_DIRECT_H

#include <stdbool.h>

struct hca_qp;
struct packet;
struct wqe;

/**
 * Executes and completes @wqe, a READ or WRITE with @packet, in the memory of the peer. Returns false if it must be
 * sent, with @packet unchanged. The lock of @qp, which sends over a link of whole messages, is held.
 */
bool direct_execute(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet);

#endif
