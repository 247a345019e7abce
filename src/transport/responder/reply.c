/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies, and completions of receives. */
#include "observe/counters.h"
#include "transport/qp/packet_begin.h"
#include "transport/responder/responder.h"

/* A DCT replies along the request's path, with its own traffic class and hop limit (ibv_modify_qp(3), ah_attr). */
static void return_to_sender(struct request *request)
{
	const struct packet *packet = request->packet;
	struct packet *reply = request->reply;

	reply->destination_qpn = packet->source_qpn;
	reply->own_path = request->qp->path;
	reply->own_path.source = packet->path->destination;
	reply->own_path.destination = packet->path->source;
	reply->own_path.type = packet->path->type;
	reply->path = &reply->own_path;
	reply->link = packet->link;
	request->replied = reply->link != NULL;
}

void responder_begin_reply(struct request *request, enum message message, uint32_t psn, uint8_t syndrome)
{
	const struct hca_qp *qp = request->qp;
	struct packet *reply = request->reply;

	packet_begin(reply, qp, qp->transport->packets, (uint8_t)message);
	request->replied = qp->link != NULL;
	if (qp->dct)
		return_to_sender(request);
	reply->psn = psn;
	reply->syndrome = syndrome;
	reply->msn = request->responder->msn;
}

enum responder_state responder_nak(struct request *request, uint8_t kind, uint8_t code, uint32_t psn)
{
	counter_add(request->qp->hca,
		    kind == AETH_RNR_NAK   ? COUNTER_RNR_NAKS_SENT
		    : code == NAK_SEQUENCE ? COUNTER_SEQUENCE_NAKS_SENT
					   : COUNTER_ERROR_NAKS_SENT,
		    1);
	responder_begin_reply(request, MESSAGE_ACKNOWLEDGE, psn, kind | code);
	return RESPONDER_DONE;
}

void responder_complete_receive(struct request *request, struct completion *completion)
{
	struct hca_qp *qp = request->qp;
	struct hca_srq *srq = request->responder->srq;
	bool xrc = srq && srq->xrcd;

	completion->user_index = xrc ? srq->user_index : qp->user_index;
	completion->qpn = qp->number;
	completion->wqe_counter = request->responder->receive.counter;
	request->responder->has_receive = false;
	request->responder->srq = NULL;
	qp_complete(qp, xrc ? srq->cq : qp->recv_cq, *completion);
}
