/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the data of a request goes, or comes from: all of it is checked before a byte moves. See responder.h. */
#include "queue/xrc.h"
#include "device/counters.h"
#include "transport/atomic.h"
#include "transport/drop.h"
#include "transport/responder.h"

/* A key that the requester named. */
static enum responder_state refuse_key(struct request *request)
{
	return responder_refuse_with(request, NAK_REMOTE_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR,
				     QP_EVENT_ACCESS_ERROR);
}

/*
 * A message longer than its receive. IBTA 9.9.3: of a connection that is reliable, the end. An unreliable one is dropped, and
 * the receive waits for the next message (class D); that of an SRQ, which somebody else may wait for, ends in error (class
 * E). The queue pair goes on in both cases: else any datagram could stop it.
 */
static enum responder_state refuse_long(struct request *request, uint64_t header)
{
	struct hca_qp *qp = request->qp;
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	struct explain_subject subject = {.qpn = qp->number, .receive = true, .qp_state = (uint8_t)qp->state};
	struct completion completion = {
		.opcode = MLX5_CQE_RESP_ERR,
		.syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
		.vendor_syndrome = RULE_RECEIVE_TOO_SHORT,
	};
	enum responder_state next =
		REFUSE_REQUEST(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, QP_EVENT_COUNT,
			       RECEIVE_TOO_SHORT, responder->offset + header + packet->payload.length,
			       responder->receive.bytes, header);

	if (qp->transport->reliable)
		return next;
	counter_add(qp->hca, COUNTER_DROPPED_UNRELIABLE, 1);
	responder->in_message = false;
	responder->expected_psn = psn_add(packet->psn, packet->count);
	if (!responder->srq) {
		packet_explain_drop(qp->hca, packet, &subject, &request->why);
		return RESPONDER_DONE;
	}
	subject.syndrome = completion.syndrome;
	explain_make(qp->hca, &subject, request->why.rule, request->why.args, EXPLAIN_ARGS);
	responder_complete_receive(request, &completion);
	return RESPONDER_DONE;
}

/* IBTA 10.2.3: what a receive of an SRQ names is in the SRQ's domain, which need not be that of the queue pair. */
static struct walk_access *access_of_receive(struct request *request)
{
	const struct hca_srq *srq = request->responder->srq;
	struct walk_access *access = &request->reply->own_access;

	if (!srq || srq->pd->number == request->access->pd)
		return request->access;
	*access = *request->access;
	access->pd = srq->pd->number;
	return access;
}

static enum responder_state target_receive(struct request *request)
{
	struct hca_qp *qp = request->qp;
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	uint64_t header = qp->transport->datagram ? RESPONDER_GRH_BYTES : 0;
	uint64_t bytes = header + packet->payload.length;
	struct walk_access *access = access_of_receive(request);

	access->unfinished = access->more = !(packet->place & PLACE_LAST);
	if (bytes > responder->receive.bytes - responder->offset)
		return refuse_long(request, header);
	stream_begin(request->sink, access, RIGHT_LOCAL_WRITE);
	request->sink->offset = responder->offset - header;
	if (stream_add_segments(request->sink, responder->receive.segment, responder->receive.count, responder->offset,
				bytes, &request->why))
		return responder_refuse_with(request, NAK_REMOTE_OPERATION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR,
					     QP_EVENT_COUNT);
	return RESPONDER_EXECUTE;
}

/* [@address, +@bytes) of @rkey, for what is at @offset of the message. */
static enum responder_state target_key(struct request *request, uint8_t right, uint32_t rkey, uint64_t address,
				       uint64_t offset, uint64_t bytes)
{
	stream_begin(request->sink, request->access, right);
	request->sink->offset = offset;
	if (stream_add_key(request->sink, rkey, address, bytes, &request->why))
		return refuse_key(request);
	return RESPONDER_EXECUTE;
}

enum responder_state responder_target_packet(struct request *request, uint8_t right, uint64_t offset, uint64_t bytes)
{
	return target_key(request, right, request->packet->rkey, request->packet->remote_address, offset, bytes);
}

/*
 * Where a READ request begins in its READ. Our requester asks for a long one in pieces (docs/wire.md), and does not ask for an
 * acknowledgement with those that go on where the one before ended.
 */
static uint64_t read_offset(const struct responder *responder, const struct packet *packet)
{
	const struct read_end *end = &responder->read_end;

	return !packet->acknowledge && packet->rkey == end->rkey && packet->remote_address == end->address ? end->offset
													   : 0;
}

/* The first packet of a WRITE names the whole range: all of it is checked then (IBTA C9-88). */
static enum responder_state target_write(struct request *request)
{
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	uint64_t bytes = packet->payload.length;
	enum responder_state next;

	if (bytes > responder->dma_length - responder->offset ||
	    (packet->place & PLACE_LAST && bytes != responder->dma_length - responder->offset))
		return REFUSE_REQUEST(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
				      QP_EVENT_REQUEST_ERROR, WRITE_LENGTH, responder->dma_length,
				      responder->offset + bytes);
	if (!responder->dma_length)
		return RESPONDER_EXECUTE;
	if (packet->place == PLACE_FIRST) {
		request->access->more = false;
		next = target_key(request, RIGHT_REMOTE_WRITE, responder->rkey, responder->remote_address, 0,
				  responder->dma_length);
		if (next != RESPONDER_EXECUTE)
			return next;
	}
	request->access->unfinished = request->access->more = !(packet->place & PLACE_LAST);
	/* The sum cannot wrap: with the first packet the whole range was found to be in a key. */
	return target_key(request, RIGHT_REMOTE_WRITE, responder->rkey, responder->remote_address + responder->offset,
			  responder->offset, bytes);
}

static enum responder_state target_atomic(struct request *request)
{
	const struct packet *packet = request->packet;
	uint32_t bytes = atomic_bytes(packet);

	if (packet->remote_address % bytes)
		return REFUSE_REQUEST(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
				      QP_EVENT_REQUEST_ERROR, ATOMIC_ALIGNMENT, packet->remote_address, bytes);
	return responder_target_packet(request, RIGHT_ATOMIC, 0, bytes);
}

enum responder_state responder_check_target(struct request *request)
{
	const struct packet *packet = request->packet;

	if (message_takes_receive(packet->message))
		return target_receive(request);
	if (message_is_write(packet->message))
		return target_write(request);
	if (message_is_atomic(packet->message))
		return target_atomic(request);
	if (!packet->dma_length)
		return RESPONDER_EXECUTE;
	return responder_target_packet(request, RIGHT_REMOTE_READ, read_offset(request->responder, packet),
				       packet->dma_length);
}
