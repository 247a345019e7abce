/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps of the responder, compiled for several kinds of requests (struct request_kind). Each returns the next state.
 * The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_STEPS_H
#define SOFTHCA_TRANSPORT_RESPONDER_STEPS_H

#include "observe/counters.h"
#include "transport/responder/answer.h"
#include "transport/responder/target.h"

/** Handles a packet @distance away from the expected one. If negative, all of it was received earlier. */
enum responder_state responder_out_of_order(struct request *request, int32_t distance);
/** Returns true if the packets after the first @known, received ones continue the current message. */
bool responder_goes_on(const struct request *request, uint32_t known);
/** Skips the first @known packets, received before. */
void responder_leave_out(struct request *request, uint32_t known);
/** Refuses a packet, or the last of a run, because of its length. */
enum responder_state responder_refuse_length(struct request *request);
enum responder_state responder_refuse_opcode(struct request *request);
enum responder_state responder_refuse_qkey(struct request *request);
enum responder_state responder_no_receive(struct request *request);
/** Raises COMM_EST. */
void responder_establish(struct hca_qp *qp);
/** Completes the receive of a SEND with invalidate in error (request->why), and moves the QP to ERR. */
void responder_fail_invalidation(struct request *request);
void responder_fill_datagram(const struct packet *packet, struct completion *completion);

static inline SPECIALISED enum responder_state check_psn(struct request *request, const struct request_kind kind)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	int32_t distance = psn_distance(packet->psn, responder->expected_psn);

	if (unlikely(distance < 0) && kind.transport.reliable && !path_is_fast(kind.path) &&
	    responder_goes_on(request, (uint32_t)-distance)) {
		responder_leave_out(request, (uint32_t)-distance);
		distance = 0;
	}
	if (!kind.transport.datagram && unlikely(distance != 0))
		return RESPONDER_RARELY(kind, responder_out_of_order(request, distance));
	responder->nak_sent = false;
	if (unlikely(kind.message == MESSAGE_UNSUPPORTED))
		return responder_refuse_opcode(request);
	return kind.path == PATH_GENERAL && request->qp->domain ? RESPONDER_CHECK_XRC : RESPONDER_CHECK_ORDER;
}

/*
 * IBTA 9.7.4.1.6: all packets of a message but the last are full, and the last is not empty unless it is the only one.
 * Masks of atomics are not payload.
 */
static inline SPECIALISED bool fits_in_packets(const struct hca_qp *qp, const struct packet *packet, uint8_t message)
{
	uint64_t bytes = packet->payload.length, room = (uint64_t)packet->count << qp->mtu_shift;

	if (message_is_atomic(message) || message == MESSAGE_READ_REQUEST)
		return true;
	if (!(packet->place & PLACE_LAST))
		return bytes == room;
	/* Runs must not hide a packet that is not full. */
	if (packet->count > 1)
		return bytes <= room && bytes + (1u << qp->mtu_shift) > room;
	return bytes <= room && (bytes || packet->place & PLACE_FIRST);
}

/* IBTA 9.7.4.1.3: no other message begins between the first and the last packet. */
static inline SPECIALISED enum responder_state check_order(struct request *request, const struct request_kind kind)
{
	struct hca_qp *qp = request->qp;
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	bool first = packet->place & PLACE_FIRST;

	if (unlikely(!responder->established) && qp->state == IBV_QPS_RTR && kind.transport.connected)
		responder_establish(qp);
	if (unlikely(first == responder->in_message ||
		     (!first && message_family(kind.message) != message_family(responder->message)))) {
		if (!kind.transport.reliable) {
			responder->in_message = false;
			return first ? RESPONDER_CHECK_ORDER : RESPONDER_DONE;
		}
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_PACKET_ORDER,
					 FIGURES(packet->message, packet->psn, responder->in_message));
	}
	if (unlikely(!fits_in_packets(qp, packet, kind.message)))
		return RESPONDER_RARELY(kind, responder_refuse_length(request));
	if (first) {
		responder->message = kind.message;
		responder->offset = 0;
		responder->remote_address = packet->remote_address;
		responder->rkey = packet->rkey;
		responder->dma_length = packet->dma_length;
		if (kind.path == PATH_GENERAL)
			responder->xrc_srqn = packet->xrc_srqn;
		/*
		 * Another message does not continue the block of one that was cut off (mlx5dv_wr_set_mkey_crypto(3),
		 * NOTES: job_size).
		 */
		responder->progress.valid = false;
	}
	return RESPONDER_CHECK_OPERATION;
}

/* Checks rights of the QP (ibv_modify_qp(3), qp_access_flags), and responder resources for READ and atomics. */
static inline SPECIALISED enum responder_state check_operation(struct request *request, const struct request_kind kind)
{
	struct hca_qp *qp = request->qp;
	const struct packet *packet = request->packet;
	unsigned int needed = message_properties[kind.message].access;

	if (kind.transport.datagram) {
		if (packet->qkey != qp->attr.qkey)
			return RESPONDER_RARELY(kind, responder_refuse_qkey(request));
		return RESPONDER_CHECK_RECEIVE;
	}
	/*
	 * IBTA 11.6.2, Remote Invalid Request Error: "the operation is not supported by this receive queue", or
	 * "insufficient buffering to receive a new RDMA or Atomic Operation request".
	 */
	if (unlikely((qp->attr.qp_access_flags & needed) != needed))
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_QP_ACCESS,
					 FIGURES(packet->message, qp->number, needed, qp->attr.qp_access_flags));
	if (!message_has(kind.message, MESSAGE_IS_ANSWERED))
		return RESPONDER_CHECK_RECEIVE;
	if (unlikely(!qp->attr.max_dest_rd_atomic))
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_QP_NO_RESOURCES,
					 FIGURES(packet->message, qp->number));
	if (unlikely(answer_is_full(request->responder, qp->attr.max_dest_rd_atomic)))
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_RESPONSES_DUE,
					 FIGURES(packet->message, packet->psn, qp->number,
						 qp->attr.max_dest_rd_atomic));
	return RESPONDER_CHECK_RECEIVE;
}

static inline SPECIALISED bool responder_take_receive(struct request *request, const struct request_kind kind)
{
	struct responder *responder = request->responder;
	struct hca_srq *srq = request->srq;

	if (!responder->has_receive && kind.transport.reliable && kind.path == PATH_GENERAL &&
	    link_hides_receives(request->qp->hca, request->qp->number, request->packet))
		return false;
	if (!responder->has_receive) {
		responder->has_receive =
			srq ? srq_take(srq, &responder->receive) : rq_take(&request->qp->rq, &responder->receive);
		responder->srq = responder->has_receive ? srq : NULL;
	}
	return responder->has_receive;
}

/* IBTA C9-82: a SEND takes a receive at its first packet, a WRITE with immediate at its last. */
static inline SPECIALISED enum responder_state check_receive(struct request *request, const struct request_kind kind)
{
	const struct packet *packet = request->packet;
	bool needed = (message_has(kind.message, MESSAGE_TAKES_RECEIVE) && packet->place & PLACE_FIRST) ||
		      (message_has(kind.message, MESSAGE_TAKES_RECEIVE_LAST) && packet->place & PLACE_LAST);

	if (needed && unlikely(!responder_take_receive(request, kind)))
		return RESPONDER_RARELY(kind, responder_no_receive(request));
	return RESPONDER_CHECK_TARGET;
}

/* @value: an atomic's original, a READ's offset. */
static inline SPECIALISED void responder_remember(struct responder *responder, const struct packet *packet,
						  uint64_t value)
{
	responder->resource[responder->next_resource++ & (responder->resources - 1)] = (struct responder_resource){
		.psn = packet->psn,
		.count = packet->count,
		.message = packet->message,
		.original = value,
	};
}

/* A softhca requester may divide a READ: target.h. */
static inline SPECIALISED void responder_remember_read(struct request *request)
{
	const struct packet *packet = request->packet;
	uint64_t offset = packet->dma_length ? request->sink->offset : 0;

	responder_remember(request->responder, packet, offset);
	request->responder->read_end = (struct read_end){
		.rkey = packet->rkey,
		.address = packet->remote_address + packet->dma_length,
		.offset = offset + packet->dma_length,
	};
}

/* As responder_complete_receive(), for a QP with its own receive CQ. */
static inline SPECIALISED void complete_own_receive(struct request *request, struct completion *completion)
{
	struct hca_qp *qp = request->qp;

	completion->user_index = qp->user_index;
	completion->qpn = qp->number;
	completion->wqe_counter = request->responder->receive.counter;
	request->responder->has_receive = false;
	request->responder->srq = NULL;
	qp_complete(qp, qp->recv_cq, *completion);
}

static inline SPECIALISED void responder_complete_message(struct request *request, const struct request_kind kind)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	struct completion completion =
				  {
					  .solicited = packet->solicited,
					  .byte_count = (uint32_t)responder->offset,
					  .immediate = packet->immediate,
				  },
			  spilled;

	switch (kind.message) {
	case MESSAGE_SEND_IMM:
		completion.opcode = MLX5_CQE_RESP_SEND_IMM;
		break;
	case MESSAGE_SEND_INVALIDATE:
		completion.opcode = MLX5_CQE_RESP_SEND_INV;
		completion.immediate = htobe32(packet->invalidate_rkey);
		break;
	case MESSAGE_WRITE_IMM:
		completion.opcode = MLX5_CQE_RESP_WR_IMM;
		break;
	default:
		completion.opcode = MLX5_CQE_RESP_SEND;
		completion.immediate = 0; /* partition key 0 */
	}
	/* A DCT receives from any sender. */
	if (kind.path == PATH_GENERAL && request->qp->dct)
		completion.remote_qpn = packet->source_qpn;
	if (kind.transport.datagram)
		responder_fill_datagram(packet, &completion);
	/* RC never uses an XRC SRQ. */
	if (kind.path != PATH_GENERAL)
		complete_own_receive(request, &completion);
	else
		responder_complete_receive(request, SPILL(&spilled, &completion));
}

/* Expects the next request. Returns true if the message continues. */
static inline SPECIALISED bool responder_expect_next(struct request *request)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;

	responder->expected_psn = psn_add(packet->psn, packet->count);
	responder->in_message = !(packet->place & PLACE_LAST);
	if (responder->in_message)
		return true;
	responder->msn = (responder->msn + 1) & PSN_MASK;
	return false;
}

/*
 * Checks @packet on the fast path, and fills @request and @sink, the stream of its data. Returns false to fall back,
 * with nothing changed.
 */
static inline SPECIALISED bool responder_check_fast(struct request *request, struct hca_qp *qp, struct packet *packet,
						    struct stream *sink, const struct request_kind kind)
{
	request->qp = qp;
	request->responder = &qp->responder;
	request->packet = packet;
	request->access = &qp->access;
	request->srq = qp->srq;
	request->sink = sink;
	sink->whole = NULL;
	return check_psn(request, kind) == RESPONDER_CHECK_ORDER &&
	       check_order(request, kind) == RESPONDER_CHECK_OPERATION &&
	       check_operation(request, kind) == RESPONDER_CHECK_RECEIVE &&
	       check_receive(request, kind) == RESPONDER_CHECK_TARGET &&
	       check_target(request, kind) == RESPONDER_EXECUTE;
}

/*
 * Executes @packet on the fast path between contiguous regions. Data of a READ and an atomic's result go to @place.
 * Returns false to fall back, with nothing changed.
 */
static inline SPECIALISED bool responder_execute_fast(struct hca_qp *qp, struct packet *packet, struct stream *place,
						      const struct request_kind kind)
{
	struct request request;
	struct stream sink;
	uint64_t original;

	if (!responder_check_fast(&request, qp, packet, &sink, kind))
		return false;
	/* A key may map an aligned remote address to unaligned local memory: fall back. */
	if (message_is_atomic(kind.message) && unlikely((uintptr_t)sink.whole % sizeof(original)))
		return false;
	if (kind.message == MESSAGE_READ_REQUEST) {
		responder_remember_read(&request);
		if (packet->dma_length)
			stream_copy_whole(place, &sink, packet->dma_length);
	} else if (message_is_atomic(kind.message)) {
		original = atomic_execute_word(packet, (uint64_t *)sink.whole);
		responder_remember(&qp->responder, packet, original);
		/* Atomics always have a place. */
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		copy_bytes_last(place->whole, (const uint8_t *)&original, sizeof(original));
	} else if (packet->payload.length) {
		stream_copy_whole(&sink, &packet->payload, packet->payload.length);
		qp->responder.offset += packet->payload.length;
	}
	responder_expect_next(&request);
	if (message_has(kind.message, MESSAGE_TAKES_RECEIVE))
		responder_complete_message(&request, kind);
	return true;
}

#endif
