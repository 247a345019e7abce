/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: each state is a function that returns the next. Everything that a run covers is checked before a byte
 * moves, so a refused run has written nothing (IBTA 9.7.4, 9.8.2, 9.8.3).
 */
#include <string.h>

#include "core/compiler.h"
#include "core/thread_memory.h"
#include "mkey/umr.h"
#include "hca/gid.h"
#include "observe/counters.h"
#include "queue/xrc.h"
#include "transport/qp/drop.h"
#include "transport/qp/packet_begin.h"
#include "transport/qp/record.h"
#include "transport/responder/answer.h"
#include "transport/responder/atomic.h"
#include "transport/responder/dct.h"
#include "transport/responder/grh.h"
#include "transport/responder/steps.h"
#include "wire/link.h"

/* ---- refusals ------------------------------------------------------------------------------------------------- */

/* Ends an initiator's connection. Repetitions get the same refusal. */
static void end_connection(struct request *request)
{
	struct dct_initiator *initiator = request->initiator;

	initiator->refused = true;
	initiator->nak = request->nak;
	initiator->refusal_psn = request->packet->psn;
	initiator->why = request->why;
}

/*
 * Returns true if the first of several packets is refused. The last one, which would have taken the receive (IBTA
 * C9-82), is not examined then.
 */
static bool refused_before_receive(const struct packet *packet)
{
	return message_has(packet->message, MESSAGE_TAKES_RECEIVE_LAST) && packet->place & PLACE_FIRST &&
	       packet->count > 1;
}

/* Returns true if an RC queue pair is its own peer. */
static bool is_own_peer(const struct hca_qp *qp)
{
	if (qp->type != IBV_QPT_RC || qp->attr.dest_qp_num != qp->number)
		return false;
	for (size_t i = 0; i < qp->hca->gid_count; i++)
		if (!memcmp(&qp->hca->gids[i].gid, &qp->path.destination, sizeof(qp->path.destination)))
			return true;
	return false;
}

/*
 * Waits for the NAK of @packet, which goes to this queue pair: its requester completes the refused request with that
 * status, then enters ERR. Until then the responder executes and answers nothing: it expects a packet that never comes,
 * and has sent its NAK.
 */
static void await_own_nak(struct responder *responder, const struct packet *packet)
{
	responder->expected_psn = psn_add(packet->psn, -(PSN_MASK / 4) & PSN_MASK);
	responder->nak_sent = true;
	/* No other peer began with a different number. */
	responder->psn_explained = true;
}

/* Returns true if @packet is a multicast datagram of the queue pair itself. */
static bool is_own_datagram(const struct hca_qp *qp, const struct packet *packet)
{
	return packet->source_qpn == qp->number && gid_is_multicast(&packet->path->destination);
}

/*
 * Refuses a request. A datagram or unreliable message that breaks a rule is dropped (IBTA 9.8.2.2, 9.8.3.2); but if its
 * receive cannot be written, that and the QP end in error. A reliable request gets a NAK, and the QP goes to ERR; a DCT
 * continues.
 */
static enum responder_state responder_refuse(struct request *request)
{
	struct hca_qp *qp = request->qp;
	bool reliable = qp->transport->reliable;
	bool fails_receive =
		request->responder->has_receive && (reliable ? qp->dct || !refused_before_receive(request->packet)
							     : request->syndrome == MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	/* The end of a receive or QP bounds how often this happens. */
	bool dropped = !fails_receive && (!reliable || qp->dct);
	struct explain_subject subject = {
		.qpn = qp->number,
		.receive = true,
		.qp_state = (uint8_t)qp->state,
		.expected = request->why.rule == RULE_NO_RECEIVE && is_own_datagram(qp, request->packet),
	};
	uint64_t record;

	/* A peer in this process reports it by its completion. */
	subject.syndrome = fails_receive ? request->syndrome : 0;
	record = dropped ? packet_explain_drop(qp->hca, request->packet, &subject, request->why.rule, request->why.args,
					       EXPLAIN_ARGS)
			 : explain_make(qp->hca, &subject, request->why.rule, request->why.args, EXPLAIN_ARGS);
	if (reliable) {
		responder_nak(request, AETH_NAK, request->nak, request->packet->psn);
		request->reply->why = request->why;
	}
	if (request->initiator)
		end_connection(request);
	request->responder->in_message = false;
	if (fails_receive) {
		struct completion completion = {
			.opcode = MLX5_CQE_RESP_ERR,
			.syndrome = request->syndrome,
			.vendor_syndrome = (uint8_t)request->why.rule,
		};

		responder_complete_receive(request, &completion);
	} else if (!reliable) {
		counter_add(qp->hca, COUNTER_DROPPED_UNRELIABLE, 1);
		return RESPONDER_DONE;
	}
	/* Only one initiator is at fault. */
	if (qp->dct)
		return RESPONDER_DONE;
	if (request->event != QP_EVENT_COUNT)
		qp_raise(qp, request->event);
	if (is_own_peer(qp))
		await_own_nak(request->responder, request->packet);
	else
		qp_enter_error(qp, record);
	return RESPONDER_DONE;
}

/* ---- checks --------------------------------------------------------------------------------------------------- */

/*
 * IBTA annex A14: a request of XRC names an SRQ of the QP's domain, whose CQ and protection domain it uses. Returns
 * RESPONDER_REFUSE if that does not exist.
 */
static enum responder_state responder_find_srq(struct request *request)
{
	struct hca_qp *qp = request->qp;
	uint32_t number = request->packet->xrc_srqn;
	struct hca_srq *srq = id_table_find(&qp->hca->srqs, number);

	if (!srq)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_XRC_SRQ_UNKNOWN,
					 FIGURES(request->packet->message, number));
	if (srq->domain != qp->domain)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_XRC_SRQ_DOMAIN,
					 FIGURES(request->packet->message, number, qp->number));
	request->srq = srq;
	/*
	 * An access of its own: a READ's payload is read without the lock, and the next request may name another SRQ.
	 */
	request->access = &request->reply->own_access;
	*request->access = qp->access;
	request->access->pd = srq->pd->number;
	__atomic_store_n(&qp->signature_cq, srq->cq, __ATOMIC_RELAXED);
	return RESPONDER_CHECK_ORDER;
}

static enum responder_state responder_check_xrc(struct request *request)
{
	const struct packet *packet = request->packet;

	if (request->responder->in_message && packet->xrc_srqn != request->responder->xrc_srqn)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_XRC_SRQ_CHANGED,
					 FIGURES(packet->message, packet->psn, packet->xrc_srqn,
						 request->responder->xrc_srqn));
	return responder_find_srq(request);
}

/* ---- execution ------------------------------------------------------------------------------------------------ */

static void responder_execute_atomic(struct request *request)
{
	uint64_t original = atomic_execute(request->access, request->packet, request->sink);

	responder_remember(request->responder, request->packet, original);
	responder_begin_reply(request, MESSAGE_ATOMIC_ACKNOWLEDGE, request->packet->psn, AETH_ACK | AETH_NO_CREDITS);
	request->reply->original = original;
}

static void responder_execute_read(struct request *request)
{
	const struct packet *packet = request->packet;
	struct packet *reply = request->reply;

	responder_begin_reply(request, MESSAGE_READ_RESPONSE, packet->psn, AETH_ACK | AETH_NO_CREDITS);
	reply->count = packet->count;
	reply->payload.length = packet->dma_length;
}

static void place_datagram_header(struct request *request)
{
	THREAD_VARIABLE(struct stream, header);
	uint8_t grh[RESPONDER_GRH_BYTES];

	grh_build(grh, request->packet->path, request->packet->payload.length,
		  request->packet->message == MESSAGE_SEND_IMM);
	stream_begin(header, NULL, 0);
	stream_add_memory(header, grh, sizeof(grh));
	stream_copy(request->sink, header, sizeof(grh));
}

/*
 * Sends pending READ responses before an atomic or ATOMIC WRITE changes memory: a READ is executed before a following
 * atomic (IBTA 10.8.3.3, operation ordering), and its bytes are read when its response leaves. Best effort: responses
 * that do not fit into the link leave after the atomic (docs/inside/fidelity.md).
 */
static __attribute__((noinline)) void answer_reads_first(struct request *request)
{
	answer_send(request->qp, request->run);
}

static inline SPECIALISED enum responder_state responder_execute(struct request *request,
								 const struct request_kind kind)
{
	struct responder *responder = request->responder;
	struct packet *packet = request->packet;

	if ((message_is_atomic(kind.message) || kind.message == MESSAGE_ATOMIC_WRITE) && responder->answers &&
	    unlikely(responder->answers->pending))
		answer_reads_first(request);
	if (kind.message == MESSAGE_READ_REQUEST) {
		responder_execute_read(request);
		responder_remember_read(request);
		return RESPONDER_COMPLETE;
	}
	if (message_is_atomic(kind.message)) {
		responder_execute_atomic(request);
		return RESPONDER_COMPLETE;
	}
	if (kind.transport.datagram) {
		place_datagram_header(request);
		responder->offset += RESPONDER_GRH_BYTES;
	}
	if (packet->payload.length)
		stream_copy(request->sink, &packet->payload, packet->payload.length);
	responder->offset += packet->payload.length;
	if (kind.message == MESSAGE_ATOMIC_WRITE) {
		responder_remember(responder, packet, 0);
		responder_begin_reply(request, MESSAGE_READ_RESPONSE, packet->psn, AETH_ACK | AETH_NO_CREDITS);
	}
	return RESPONDER_COMPLETE;
}

/*
 * Acknowledges a message before its receive completes, if that wakes the program, which may answer over any QP or
 * network. As with an adapter, its peer may assume that the answered message is complete (ib_send_lat -e, with a send
 * queue of one request). Pending READ responses must be sent first.
 */
static void acknowledge_first(struct request *request)
{
	const struct hca_qp *qp = request->qp;
	const struct packet *packet = request->packet;
	struct answers *answers = request->responder->answers;
	const struct hca_srq *srq = request->responder->srq;
	const struct hca_cq *cq = srq && srq->xrcd ? srq->cq : qp->recv_cq;

	if (!cq_is_armed(cq) || !packet->acknowledge || !qp->transport->reliable || (answers && answers->pending))
		return;
	responder_begin_reply(request, MESSAGE_ACKNOWLEDGE, psn_add(packet->psn, packet->count - 1),
			      AETH_ACK | AETH_NO_CREDITS);
	if (!request->replied || link_is_immediate(qp->hca, request->reply->link) ||
	    link_send(qp->hca, request->run) == LINK_BUSY)
		return;
	request->replied = false;
	request->acknowledged = true;
	if (answers)
		answers->ack_pending = false;
}

/*
 * Fails a receive whose message has arrived, because its key could not be invalidated. IBTA 9.9.6.3, class J: the
 * receive and the queue pair end in error, without a NAK, since packets of the message may have been acknowledged.
 */
void responder_fail_invalidation(struct request *request)
{
	struct hca_qp *qp = request->qp;
	struct completion completion = {
		.opcode = MLX5_CQE_RESP_ERR,
		.syndrome = MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR,
		.vendor_syndrome = (uint8_t)request->why.rule,
	};
	struct explain_subject subject = {
		.qpn = qp->number,
		.receive = true,
		.syndrome = completion.syndrome,
		.qp_state = (uint8_t)qp->state,
	};
	uint64_t record = explain_make(qp->hca, &subject, request->why.rule, request->why.args, EXPLAIN_ARGS);

	responder_complete_receive(request, &completion);
	/* Only one initiator is at fault. */
	if (!qp->dct)
		qp_enter_error(qp, record);
}

static enum responder_state fail_invalidation(struct request *request)
{
	const struct packet *packet = request->packet;

	if (packet->acknowledge && request->qp->transport->reliable)
		responder_begin_reply(request, MESSAGE_ACKNOWLEDGE, psn_add(packet->psn, packet->count - 1),
				      AETH_ACK | AETH_NO_CREDITS);
	responder_fail_invalidation(request);
	return RESPONDER_DONE;
}

static inline SPECIALISED enum responder_state responder_complete(struct request *request,
								  const struct request_kind kind)
{
	if (responder_expect_next(request))
		return RESPONDER_ACKNOWLEDGE;
	if (kind.message == MESSAGE_SEND_INVALIDATE &&
	    invalidate_execute(request->access, request->packet->invalidate_rkey, &request->why))
		return fail_invalidation(request);
	/* A UC QP may hold the receive of a lost message, which the next message that needs one uses. */
	if (message_has(kind.message, MESSAGE_TAKES_RECEIVE | MESSAGE_TAKES_RECEIVE_LAST)) {
		acknowledge_first(request);
		responder_complete_message(request, kind);
	}
	return RESPONDER_ACKNOWLEDGE;
}

static inline SPECIALISED enum responder_state responder_acknowledge(struct request *request,
								     const struct request_kind kind)
{
	const struct packet *packet = request->packet;

	if (request->acknowledged)
		return RESPONDER_DONE;
	if (message_has(kind.message, MESSAGE_IS_ANSWERED))
		request->reply->msn = request->responder->msn;
	else if (kind.path == PATH_RC && packet->acknowledge)
		answer_add_acknowledgement(request->qp, psn_add(packet->psn, packet->count - 1), request->run);
	else if (packet->acknowledge && kind.transport.reliable)
		responder_begin_reply(request, MESSAGE_ACKNOWLEDGE, psn_add(packet->psn, packet->count - 1),
				      AETH_ACK | AETH_NO_CREDITS);
	return RESPONDER_DONE;
}

/* ---- duplicates ----------------------------------------------------------------------------------------------- */

/* Returns the request that @packet repeats, or the READ of which it requests the rest, or NULL. */
static const struct responder_resource *find_resource(const struct responder *responder, const struct packet *packet)
{
	for (uint32_t i = 0; i < responder->resources; i++) {
		const struct responder_resource *resource = &responder->resource[i];
		int32_t offset = psn_distance(packet->psn, resource->psn);

		if (resource->message == packet->message && offset >= 0 && (uint32_t)offset < resource->count &&
		    packet->count <= resource->count - (uint32_t)offset)
			return resource;
	}
	return NULL;
}

/*
 * Drops the repetition of a READ of inaccessible memory. The requester may have the answer, and the program may have
 * ended the key since. Otherwise the requester runs out of retries.
 */
static enum responder_state drop_repetition(struct request *request)
{
	const struct hca_qp *qp = request->qp;

	packet_explain_drop(qp->hca, request->packet, &(struct explain_subject){.qpn = qp->number, .receive = true},
			    RULE_REPETITION_DROPPED,
			    FIGURES(request->packet->message, request->packet->psn, qp->number, request->why.rule));
	return RESPONDER_DONE;
}

/* Executes the READ of @resource, or the rest named by address and length, again. */
static enum responder_state repeat_read(struct request *request, const struct responder_resource *resource)
{
	const struct packet *packet = request->packet;
	uint64_t offset = resource->offset +
			  ((uint64_t)(uint32_t)psn_distance(packet->psn, resource->psn) << request->qp->mtu_shift);

	if (request->qp->domain && responder_find_srq(request) == RESPONDER_REFUSE)
		return drop_repetition(request);
	if (packet->dma_length && target_packet(request, (const struct request_kind){0}, RIGHT_REMOTE_READ, offset,
						packet->dma_length) != RESPONDER_EXECUTE)
		return drop_repetition(request);
	responder_execute_read(request);
	return RESPONDER_DONE;
}

/*
 * Answers a repeated request (IBTA 9.7.5.1, annex A19): executes a READ again, repeats the response of an atomic or
 * ATOMIC WRITE, and acknowledges others again. Repetitions are never refused, since the network may deliver an old one
 * late. A READ, atomic or ATOMIC WRITE that is not remembered is dropped: an answer would acknowledge all requests
 * before it.
 */
static enum responder_state responder_answer_duplicate(struct request *request)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	const struct responder_resource *resource;

	if (packet->message == MESSAGE_UNSUPPORTED)
		return RESPONDER_DONE;
	if (!message_has(packet->message, MESSAGE_IS_ANSWERED)) {
		responder_begin_reply(request, MESSAGE_ACKNOWLEDGE, psn_add(responder->expected_psn, PSN_MASK),
				      AETH_ACK | AETH_NO_CREDITS);
		return RESPONDER_DONE;
	}
	resource = find_resource(responder, packet);
	if (!resource)
		return RESPONDER_DONE;
	switch (packet->message) {
	case MESSAGE_READ_REQUEST:
		return repeat_read(request, resource);
	case MESSAGE_ATOMIC_WRITE:
		responder_begin_reply(request, MESSAGE_READ_RESPONSE, packet->psn, AETH_ACK | AETH_NO_CREDITS);
		return RESPONDER_DONE;
	default:
		responder_begin_reply(request, MESSAGE_ATOMIC_ACKNOWLEDGE, packet->psn, AETH_ACK | AETH_NO_CREDITS);
		request->reply->original = resource->original;
		return RESPONDER_DONE;
	}
}

static RARE void record_stop(const struct request *request, enum responder_state from, enum responder_state to)
{
	if (to == RESPONDER_CHECK_XRC)
		return;
	record_stopped(request->qp, request->packet, (uint8_t)from, (uint8_t)to, request->responder->expected_psn,
		       to == RESPONDER_REFUSE ? request->why.rule : RULE_NONE);
}

static inline SPECIALISED struct responder *responder_handle(struct hca_qp *qp, struct packet *packet,
							     struct packet *reply, struct run *run,
							     const struct request_kind kind)
{
	enum responder_state state =
		kind.path == PATH_GENERAL && qp->dct ? RESPONDER_CHECK_CONNECTION : RESPONDER_CHECK_PSN;
	THREAD_VARIABLE(struct stream, sink);
	struct request request;

	request.qp = qp;
	request.packet = packet;
	request.run = run;
	request.reply = reply;
	request.acknowledged = false;
	sink->whole = NULL;
	request.sink = kind.message == MESSAGE_READ_REQUEST ? &request.reply->payload : sink;
	request.replied = false;
	request.responder = &qp->responder;
	request.initiator = NULL;
	request.access = &qp->access;
	request.srq = qp->srq;
	/* A check that passes falls through to the next state. */
#define THEN(from, next)                                                                                               \
	if (unlikely(state != RESPONDER_##next)) {                                                                     \
		if (timeline_is_on())                                                                                  \
			record_stop(&request, RESPONDER_##from, state);                                                \
		break;                                                                                                 \
	}                                                                                                              \
	__attribute__((fallthrough))
	while (state != RESPONDER_DONE) {
		switch (state) {
		case RESPONDER_CHECK_XRC:
			state = responder_check_xrc(&request);
			if (state != RESPONDER_CHECK_ORDER && timeline_is_on())
				record_stop(&request, RESPONDER_CHECK_XRC, state);
			break;
		case RESPONDER_CHECK_CONNECTION:
			state = responder_check_connection(&request);
			THEN(CHECK_CONNECTION, CHECK_PSN);
		case RESPONDER_CHECK_PSN:
			state = check_psn(&request, kind);
			THEN(CHECK_PSN, CHECK_ORDER);
		case RESPONDER_CHECK_ORDER:
			state = check_order(&request, kind);
			THEN(CHECK_ORDER, CHECK_OPERATION);
		case RESPONDER_CHECK_OPERATION:
			state = check_operation(&request, kind);
			THEN(CHECK_OPERATION, CHECK_RECEIVE);
		case RESPONDER_CHECK_RECEIVE:
			state = check_receive(&request, kind);
			THEN(CHECK_RECEIVE, CHECK_TARGET);
		case RESPONDER_CHECK_TARGET:
			state = check_target(&request, kind);
			THEN(CHECK_TARGET, EXECUTE);
		case RESPONDER_EXECUTE:
			state = responder_execute(&request, kind);
			THEN(EXECUTE, COMPLETE);
		case RESPONDER_COMPLETE:
			state = responder_complete(&request, kind);
			THEN(COMPLETE, ACKNOWLEDGE);
		case RESPONDER_ACKNOWLEDGE:
			state = responder_acknowledge(&request, kind);
			break;
		case RESPONDER_DUPLICATE:
			state = responder_answer_duplicate(&request);
			if (!request.replied && timeline_is_on())
				record_stop(&request, RESPONDER_DUPLICATE, state);
			break;
		case RESPONDER_REFUSE:
			state = responder_refuse(&request);
			break;
		case RESPONDER_DONE:
			break;
		}
	}
#undef THEN
	return request.replied ? request.responder : NULL;
}

struct responder *responder_receive(struct hca_qp *qp, struct packet *packet, struct run *run)
{
	return responder_handle(qp, packet, run_slot(run), run,
				(const struct request_kind){.transport = *qp->transport, .message = packet->message});
}

/* Executes @packet on the fast path. Returns false to fall back, with nothing changed. */
static inline SPECIALISED bool receive_whole_fast(struct hca_qp *qp, struct packet *packet, struct run *run,
						  const uint8_t message)
{
	const struct request_kind kind = {.transport = TRANSPORT_RC, .message = message, .path = PATH_FAST};

	if (unlikely(packet->payload.length && !packet->payload.whole))
		return false;
	/* See acknowledge_first(). */
	if (message_has(message, MESSAGE_TAKES_RECEIVE) && cq_is_armed(qp->recv_cq))
		return false;
	if (unlikely(!responder_execute_fast(qp, packet, NULL, kind)))
		return false;
	if (packet->acknowledge)
		answer_add_acknowledgement(qp, psn_add(packet->psn, packet->count - 1), run);
	return true;
}

void responder_receive_whole(struct hca_qp *qp, struct packet *packet, struct run *run)
{
	const struct request_kind kind = {.transport = TRANSPORT_RC, .message = packet->message, .path = PATH_RC};
	struct packet *reply = run_slot(run);

	if (packet->message == MESSAGE_WRITE && likely(receive_whole_fast(qp, packet, run, MESSAGE_WRITE)))
		return;
	if (packet->message == MESSAGE_SEND && likely(receive_whole_fast(qp, packet, run, MESSAGE_SEND)))
		return;
	if (unlikely(responder_handle(qp, packet, reply, run, kind)))
		answer_add(qp, &qp->responder, &qp->access, packet, reply, run);
}
