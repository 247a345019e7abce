/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the memory for the data of a request; all of it is checked before a byte moves. Compiled for several kinds of
 * requests (struct request_kind). The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_TARGET_H
#define SOFTHCA_TRANSPORT_RESPONDER_TARGET_H

#include "core/compiler.h"
#include "queue/receive.h"
#include "transport/responder/atomic.h"
#include "transport/responder/responder.h"

/** Refuses a remote key, with the rule in request->why. */
RARE enum responder_state responder_refuse_key(struct request *request);
/** Refuses a message longer than its receive, including the @header bytes before it. */
RARE enum responder_state responder_refuse_long(struct request *request, uint64_t header);

/* IBTA 10.2.3: the keys of an SRQ's receive are in its domain, which may differ from the QP's. */
static inline SPECIALISED bool is_receive_of_own_domain(const struct request *request)
{
	const struct hca_srq *srq = request->responder->srq;

	return likely(!srq || srq->pd->number == request->access->pd);
}

static inline SPECIALISED struct walk_access *access_of_receive(struct request *request)
{
	const struct hca_srq *srq = request->responder->srq;
	struct walk_access *access;

	if (is_receive_of_own_domain(request))
		return request->access;
	/* Never on the fast path, which has no reply. */
	access = &request->reply->own_access;
	*access = *request->access;
	access->pd = srq->pd->number;
	return access;
}

static inline SPECIALISED enum responder_state target_receive(struct request *request, const struct request_kind kind)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	uint64_t header = kind.transport.datagram ? RESPONDER_GRH_BYTES : 0;
	uint64_t bytes = header + packet->payload.length;
	struct walk_access *access;

	if (path_is_fast(kind.path) && !is_receive_of_own_domain(request))
		return RESPONDER_REFUSE;
	access = access_of_receive(request);
	access->unfinished = access->more = !(packet->place & PLACE_LAST);
	if (unlikely(bytes > responder->receive.bytes - responder->offset))
		return RESPONDER_RARELY(kind, responder_refuse_long(request, header));
	stream_begin(request->sink, access, RIGHT_LOCAL_WRITE);
	request->sink->offset = responder->offset - header;
	if (kind.path == PATH_FAST)
		return stream_add_plain_segment(request->sink, responder->receive.segment, responder->receive.count,
						responder->offset, bytes)
			       ? RESPONDER_EXECUTE
			       : RESPONDER_REFUSE;
	if (stream_add_segments(request->sink, responder->receive.segment, responder->receive.count, responder->offset,
				bytes, &request->why))
		return responder_refuse_with(request, NAK_REMOTE_OPERATION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
					     QP_EVENT_COUNT);
	return RESPONDER_EXECUTE;
}

/* Targets [@address, +@bytes) of @rkey, at @offset of the message. */
static inline SPECIALISED enum responder_state target_key(struct request *request, const struct request_kind kind,
							  uint8_t right, uint32_t rkey, uint64_t address,
							  uint64_t offset, uint64_t bytes)
{
	stream_begin(request->sink, request->access, right);
	request->sink->offset = offset;
	if (kind.path == PATH_FAST)
		return stream_add_plain(request->sink, rkey, address, bytes, request->access->more) ? RESPONDER_EXECUTE
												    : RESPONDER_REFUSE;
	if (unlikely(stream_add_key(request->sink, rkey, address, bytes, &request->why)))
		return responder_refuse_key(request);
	return RESPONDER_EXECUTE;
}

static inline SPECIALISED enum responder_state target_packet(struct request *request, const struct request_kind kind,
							     uint8_t right, uint64_t offset, uint64_t bytes)
{
	return target_key(request, kind, right, request->packet->rkey, request->packet->remote_address, offset, bytes);
}

/*
 * Returns the offset of a READ request in its READ. A softhca requester divides a long READ (docs/inside/wire.md), and
 * requests no acknowledgement with continuations.
 */
static inline uint64_t read_offset(const struct responder *responder, const struct packet *packet)
{
	const struct read_end *end = &responder->read_end;

	return !packet->acknowledge && packet->rkey == end->rkey && packet->remote_address == end->address ? end->offset
													   : 0;
}

/* IBTA C9-88: the first packet of a WRITE names the whole range, which is checked at once. */
static inline SPECIALISED enum responder_state target_write(struct request *request, const struct request_kind kind)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	uint64_t bytes = packet->payload.length, left = responder->dma_length - responder->offset;
	enum responder_state next;

	if (unlikely(bytes != left && (bytes > left || packet->place & PLACE_LAST)))
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_WRITE_LENGTH,
					 FIGURES(responder->dma_length, responder->offset + bytes));
	if (!responder->dma_length)
		return RESPONDER_EXECUTE;
	if (packet->place == PLACE_FIRST) {
		request->access->more = false;
		next = target_key(request, kind, RIGHT_REMOTE_WRITE, responder->rkey, responder->remote_address, 0,
				  responder->dma_length);
		if (next != RESPONDER_EXECUTE)
			return next;
	}
	request->access->unfinished = request->access->more = !(packet->place & PLACE_LAST);
	/* Cannot wrap: the whole range was found within a key at the first packet. */
	return target_key(request, kind, RIGHT_REMOTE_WRITE, responder->rkey,
			  responder->remote_address + responder->offset, responder->offset, bytes);
}

static inline SPECIALISED enum responder_state target_atomic(struct request *request, const struct request_kind kind)
{
	const struct packet *packet = request->packet;
	uint32_t bytes = atomic_bytes(packet);

	if (packet->remote_address % bytes)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_ATOMIC_ALIGNMENT,
					 FIGURES(packet->remote_address, bytes));
	return target_packet(request, kind, RIGHT_ATOMIC, 0, bytes);
}

/* IBTA annex A19: an ATOMIC WRITE is exactly 8 bytes, aligned. */
static inline SPECIALISED enum responder_state target_atomic_write(struct request *request,
								   const struct request_kind kind)
{
	const struct packet *packet = request->packet;
	uint64_t address = packet->remote_address;

	if (packet->dma_length != ATOMIC_WRITE_PAYLOAD || packet->payload.length != ATOMIC_WRITE_PAYLOAD)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_ATOMIC_WRITE_PACKET,
					 FIGURES(packet->psn, packet->dma_length, packet->payload.length));
	if (address % ATOMIC_WRITE_PAYLOAD)
		return responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
					 QP_EVENT_REQUEST_ERROR, RULE_ATOMIC_ALIGNMENT,
					 FIGURES(address, ATOMIC_WRITE_PAYLOAD));
	return target_packet(request, kind, RIGHT_REMOTE_WRITE, 0, ATOMIC_WRITE_PAYLOAD);
}

/* Builds and checks request->sink, the memory for the data of the request. */
static inline SPECIALISED enum responder_state check_target(struct request *request, const struct request_kind kind)
{
	const struct packet *packet = request->packet;

	if (message_has(kind.message, MESSAGE_TAKES_RECEIVE))
		return target_receive(request, kind);
	if (message_is_write(kind.message))
		return target_write(request, kind);
	if (message_is_atomic(kind.message))
		return target_atomic(request, kind);
	if (kind.message == MESSAGE_ATOMIC_WRITE)
		return target_atomic_write(request, kind);
	if (!packet->dma_length)
		return RESPONDER_EXECUTE;
	return target_packet(request, kind, RIGHT_REMOTE_READ, read_offset(request->responder, packet),
			     packet->dma_length);
}

#endif
