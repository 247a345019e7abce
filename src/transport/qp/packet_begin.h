/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts packets of a QP. The slots of a run are reused, so a field never set keeps the value of another packet. The
 * lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_QP_PACKET_BEGIN_H
#define SOFTHCA_TRANSPORT_QP_PACKET_BEGIN_H

#include "core/compiler.h"
#include "transport/qp/qp.h"
#include "wire/packet.h"

/**
 * Starts a packet of @qp to its peer, without payload. The caller sets the sequence number and what @message needs.
 * @transport: as in struct packet_opcode.
 */
static inline SPECIALISED void packet_begin(struct packet *packet, const struct hca_qp *qp, const uint8_t transport,
					    const uint8_t message)
{
	packet->transport = transport;
	packet->message = message;
	packet->place = PLACE_ONLY;
	packet->solicited = false;
	packet->acknowledge = false;
	packet->source_qpn = qp->number;
	packet->destination_qpn = qp->attr.dest_qp_num;
	packet->count = 1;
	packet->mtu = (uint16_t)(1u << qp->mtu_shift);
	packet->link = qp->link;
	packet->path = &qp->path;
	packet->why.rule = RULE_NONE;
	packet->payload.length = 0;
}

#endif
