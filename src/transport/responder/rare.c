/* SPDX-License-Identifier: BSD-2-Clause */
/* Rare steps of the responder (steps.h), and those for datagrams. */
#include "explain/limit.h"
#include "hca/gid.h"
#include "observe/counters.h"
#include "transport/qp/drop.h"
#include "transport/qp/origin.h"
#include "transport/responder/steps.h"

/* Limits rule 73, which a peer can cause. */
enum { PSN_STARTS_A_SECOND = 8 };

/* A run may begin with repeated packets and end with new ones. Each packet counts separately (IBTA 9.7.5.1). */
void responder_leave_out(struct request *request, uint32_t known)
{
	counter_add(request->qp->hca, COUNTER_DUPLICATE_REQUESTS, 1);
	packet_leave_out(request->packet, known, request->qp->mtu_shift);
}

bool responder_goes_on(const struct request *request, uint32_t known)
{
	const struct packet *packet = request->packet;

	return packet->count > known && request->responder->in_message && packet->message != MESSAGE_READ_REQUEST &&
	       !message_is_atomic(packet->message) &&
	       packet->payload.length > (uint64_t)known << request->qp->mtu_shift;
}

/*
 * Returns true if the peer's sq_psn differs from our rq_psn: no request was accepted yet, and @packet is before the
 * expected one or arrives for the second time. If only the first request was lost, the requester repeats from that one,
 * so no later request arrives twice before it.
 */
static bool starts_elsewhere(struct responder *responder, const struct packet *packet, int32_t distance)
{
	bool again = responder->early && responder->early_psn == packet->psn;

	/* Both ends began with the same number. Stored, since msn wraps to 0. */
	responder->psn_explained |= responder->msn || responder->in_message;
	if (responder->psn_explained)
		return false;
	if (!responder->early) {
		responder->early = true;
		responder->early_psn = packet->psn;
	}
	return distance < 0 || again;
}

/* Explains, once per connection, that both ends began with different sequence numbers. */
static void explain_start(struct request *request, int32_t distance)
{
	const struct hca_qp *qp = request->qp;
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;

	if (qp->dct || !starts_elsewhere(responder, packet, distance))
		return;
	responder->psn_explained = true;
	EXPLAIN_LIMITED(qp->hca, (&(const struct explain_subject){.qpn = qp->number, .receive = true}),
			PSN_STARTS_A_SECOND, RULE_PSN_START, packet->message, packet->psn, qp->number,
			responder->expected_psn);
}

enum responder_state responder_out_of_order(struct request *request, int32_t distance)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;

	if (!request->qp->transport->reliable) {
		counter_add(request->qp->hca, COUNTER_DROPPED_UNRELIABLE, 1);
		/* UC: a gap loses the message; the next begins with its first packet (IBTA 9.8.2.2.2). */
		responder->in_message = false;
		responder->expected_psn = packet->psn;
		return packet->place & PLACE_FIRST ? RESPONDER_CHECK_ORDER : RESPONDER_DONE;
	}
	explain_start(request, distance);
	if (distance < 0) {
		counter_add(request->qp->hca, COUNTER_DUPLICATE_REQUESTS, 1);
		return RESPONDER_DUPLICATE;
	}
	counter_add(request->qp->hca, COUNTER_OUT_OF_ORDER, 1);
	if (responder->nak_sent)
		return RESPONDER_DONE;
	responder->nak_sent = true;
	return responder_nak(request, AETH_NAK, NAK_SEQUENCE, responder->expected_psn);
}

enum responder_state responder_refuse_length(struct request *request)
{
	struct hca_qp *qp = request->qp;
	const struct packet *packet = request->packet;
	enum responder_state next = responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
						      QP_EVENT_REQUEST_ERROR, RULE_PACKET_LENGTH,
						      FIGURES(packet->message, packet->psn, packet->payload.length,
							      packet->count, 1u << qp->mtu_shift));

	if (qp->transport->reliable)
		return next;
	/* Another message uses the receive (IBTA 9.8.2.2). */
	request->responder->in_message = false;
	packet_explain_drop(qp->hca, packet, &(struct explain_subject){.qpn = qp->number, .receive = true},
			    request->why.rule, request->why.args, EXPLAIN_ARGS);
	return RESPONDER_DONE;
}

/* IBTA 9.7.4.1 and 9.7.5.2.4: NAK for an invalid request; the bytes after BTH are not checked. */
enum responder_state responder_refuse_qkey(struct request *request)
{
	const struct packet *packet = request->packet;
	uint64_t from[EXPLAIN_ORIGIN];

	origin_of_packet(packet, from);
	return responder_refusal(request, 0, 0, QP_EVENT_COUNT, RULE_DATAGRAM_QKEY,
				 FIGURES(packet->qkey, request->qp->attr.qkey, packet->source_qpn, from[0], from[1],
					 from[2]));
}

enum responder_state responder_refuse_opcode(struct request *request)
{
	const struct packet *packet = request->packet;

	return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
				 QP_EVENT_REQUEST_ERROR, RULE_OPCODE_UNSUPPORTED,
				 FIGURES(packet->psn, request->qp->number, packet->opcode));
}

void responder_establish(struct hca_qp *qp)
{
	qp->responder.established = true;
	qp_raise(qp, QP_EVENT_COMM_EST);
}

enum responder_state responder_no_receive(struct request *request)
{
	struct hca_qp *qp = request->qp;

	if (qp->transport->reliable) {
		request->responder->nak_sent = true;
		return responder_nak(request, AETH_RNR_NAK, qp->attr.min_rnr_timer, request->packet->psn);
	}
	return responder_refusal(request, 0, 0, QP_EVENT_COUNT, RULE_NO_RECEIVE,
				 FIGURES(request->packet->message, qp->number));
}

/*
 * Returns the value that adapters store as service level of a RoCE datagram, where programs look for it (UCX, for the
 * GRH): bit 3: UDP; below it the L3 header: 0 GRH, 1 IPv6, 2 IPv4.
 */
static uint8_t roce_packet_type(const struct packet_path *path)
{
	if (path->type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	return 8 | (gid_is_ipv4(&path->source) ? 2 : 1);
}

void responder_fill_datagram(const struct packet *packet, struct completion *completion)
{
	completion->grh = true;
	completion->sl = roce_packet_type(packet->path);
	completion->remote_qpn = packet->source_qpn;
}
