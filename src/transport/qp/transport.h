/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of transports: one machine with a table of differences. DC's other parts are in transport/qp/dci.h and
 * transport/responder/dct.h.
 */
#ifndef SOFTHCA_TRANSPORT_QP_TRANSPORT_H
#define SOFTHCA_TRANSPORT_QP_TRANSPORT_H

#include "format/wqe.h"
#include "transport/qp/dci.h"
#include "transport/qp/qp.h"
#include "wire/link.h"

struct transport {
	uint8_t packets;         /* struct packet_opcode.transport */
	uint8_t opcodes;         /* enum wqe_transport: column of wqe_opcodes */
	bool requests, responds; /* its halves */
	bool reliable;  /* acknowledges and retries; errors of the send queue move the QP to ERR, otherwise SQE */
	bool connected; /* has a peer, and messages of many packets */
	bool any_peer;  /* transport/qp/origin.h */
	bool datagram;  /* DETH, Q_Key, 40 bytes of GRH before received data */
};

/* For code compiled for RC alone. */
#define TRANSPORT_RC                                                                                                   \
	{                                                                                                              \
		.packets = IBV_QPT_RC, .opcodes = WQE_RC, .requests = true, .responds = true, .reliable = true,        \
		.connected = true                                                                                      \
	}

const struct transport *transport_of(enum ibv_qp_type type);

/** Returns the link to the peer of a reliable QP, or to a DCI's current target, and stores its @number. */
static inline const struct link *requester_peer(const struct hca_qp *qp, uint32_t *number)
{
	*number = qp->dci ? qp->dci->target.number : qp->attr.dest_qp_num;
	return qp->dci ? qp->dci->target.link : qp->link;
}

/** Its lock is held. */
static inline bool qp_receives(const struct hca_qp *qp)
{
	const unsigned int receiving = 1u << IBV_QPS_RTR | 1u << IBV_QPS_RTS | 1u << IBV_QPS_SQD | 1u << IBV_QPS_SQE;

	return receiving >> qp->state & 1;
}

/**
 * Returns true if @qp, the destination of @self, is connected to it and can handle its requests under the lock of
 * @self. Both are RC and locked.
 */
static inline bool qp_is_peer_of(const struct hca_qp *qp, const struct hca_qp *self)
{
	return qp->in_process && qp->attr.dest_qp_num == self->number && !qp->hca->filters && qp_receives(qp);
}

#endif
