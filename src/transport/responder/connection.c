/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds initiator and connection of a request to a DCT. */
#include <string.h>

#include "transport/qp/drop.h"
#include "transport/responder/answer.h"
#include "transport/responder/dct.h"
#include "transport/responder/responder.h"

static void connection_explain_drop(const struct request *request, enum explain_rule rule, const uint64_t *figures,
				    size_t count)
{
	const struct explain_subject subject = {.qpn = request->qp->number, .receive = true};

	packet_explain_drop(request->qp->hca, request->packet, &subject, rule, figures, count);
}

/* Completes the receive of a message that ends early: IBTA 11.6.2, Remote Aborted Error. */
static void abort_message(struct request *request, const struct dct_initiator *initiator)
{
	struct hca_qp *qp = request->qp;
	struct explain_subject subject = {
		.qpn = qp->number,
		.receive = true,
		.syndrome = MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR,
		.qp_state = (uint8_t)qp->state,
	};
	struct completion completion = {
		.opcode = MLX5_CQE_RESP_ERR,
		.syndrome = MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR,
		.vendor_syndrome = RULE_DC_ABORTED,
	};

	if (!request->responder->has_receive)
		return;
	EXPLAIN(qp->hca, &subject, RULE_DC_ABORTED, initiator->qpn, qp->number, request->responder->offset);
	responder_complete_receive(request, &completion);
}

/* Begins a connection; the one of the place's previous owner has ended. */
static void begin_connection(struct request *request, struct dct_initiator *initiator)
{
	struct responder *responder = &initiator->responder;
	const struct packet *packet = request->packet;

	answer_forget(request->qp, responder);
	initiator->connection = packet->dc_connection;
	initiator->left = false;
	initiator->refused = false;
	initiator->access = request->qp->access;
	initiator->access.progress = &responder->progress;
	responder->expected_psn = packet->dc_first_psn & PSN_MASK;
	responder->msn = 0;
	responder->in_message = false;
	responder->nak_sent = false;
	responder->progress.valid = false;
	memset(responder->resource, 0, responder->resources * sizeof(*responder->resource));
}

/*
 * Returns true for the first packet of a connection. Only that is answered without existing state: a NAK of a later one
 * would acknowledge all packets before it.
 */
static bool begins_connection(const struct packet *packet)
{
	return packet->psn == (packet->dc_first_psn & PSN_MASK);
}

static enum responder_state wrong_key(struct request *request)
{
	const struct packet *packet = request->packet;

	if (!begins_connection(packet) || packet->message == MESSAGE_DISCONNECT)
		return RESPONDER_DONE;
	return responder_refusal(request, NAK_REMOTE_ACCESS, 0, QP_EVENT_COUNT, RULE_DC_KEY,
				 FIGURES(packet->message, packet->source_qpn, request->qp->number, packet->dc_key));
}

static enum responder_state no_place(struct request *request)
{
	const struct packet *packet = request->packet;
	struct hca_qp *qp = request->qp;

	if (!begins_connection(packet))
		return RESPONDER_DONE;
	connection_explain_drop(request, RULE_DCT_FULL,
				FIGURES(packet->message, packet->source_qpn, qp->number, qp->dct->count));
	return responder_nak(request, AETH_RNR_NAK, qp->attr.min_rnr_timer, packet->psn);
}

static enum responder_state connection_over(struct request *request)
{
	const struct packet *packet = request->packet;
	struct hca_qp *qp = request->qp;

	connection_explain_drop(request, RULE_DC_CONNECTION_OVER,
				FIGURES(packet->message, packet->psn, packet->source_qpn, qp->number));
	return RESPONDER_DONE;
}

/* Ends the connection of an initiator that changes its target. */
static enum responder_state initiator_disconnect(struct request *request, struct dct_initiator *initiator)
{
	if (!initiator || initiator->connection != request->packet->dc_connection)
		return RESPONDER_DONE;
	request->responder = &initiator->responder;
	abort_message(request, initiator);
	initiator->left = true;
	return RESPONDER_DONE;
}

enum responder_state responder_check_connection(struct request *request)
{
	const struct packet *packet = request->packet;
	struct dct *dct = request->qp->dct;
	struct dct_initiator *initiator;
	int64_t newer;

	if (packet->dc_key != dct->access_key)
		return wrong_key(request);
	initiator = dct_find(dct, packet);
	if (packet->message == MESSAGE_DISCONNECT)
		return initiator_disconnect(request, initiator);
	newer = initiator ? (int64_t)(packet->dc_connection - initiator->connection) : 1;
	if (newer < 0 || (!newer && initiator->left))
		return connection_over(request);
	if (!initiator && !(initiator = dct_place(dct)))
		return no_place(request);
	request->responder = &initiator->responder;
	if (newer) {
		abort_message(request, initiator);
		dct_assign(dct, initiator, packet);
		begin_connection(request, initiator);
	}
	/* The CQ was full for the previous message. */
	if (request->qp->state == IBV_QPS_ERR)
		return RESPONDER_DONE;
	initiator->era = dct->era;
	request->initiator = initiator;
	request->access = &initiator->access;
	if (!initiator->refused)
		return RESPONDER_CHECK_PSN;
	/* Repeats the refusal, since the NAK may have been lost. */
	if (packet->psn == initiator->refusal_psn) {
		responder_nak(request, AETH_NAK, initiator->nak, packet->psn);
		request->reply->why = initiator->why;
	}
	return RESPONDER_DONE;
}
