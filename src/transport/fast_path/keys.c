/* SPDX-License-Identifier: BSD-2-Clause */
/* The fast path for memory that is not contiguous, and for less common opcodes. */
#include "transport/fast_path/keys.h"

#include "core/thread_memory.h"
#include "mkey/umr.h"
#include "observe/key_observer.h"
#include "transport/fast_path/finish.h"
#include "transport/qp/record.h"
#include "transport/requester/build.h"
#include "transport/responder/steps.h"

/* In memory of the thread. */
struct keyed_message {
	struct packet packet;
	struct stream place; /* for data of a READ or atomic */
	struct stream sink;  /* the responder's memory */
	struct wqe wqe;
};

/* Returns true if the first data segment exceeds what may be copied under the locks of both QPs. */
static bool is_long(const struct wqe *wqe)
{
	struct mlx5_wqe_data_seg segment;

	if (wqe->size - wqe->data < sizeof(segment))
		return false;
	memcpy(&segment, wqe->bytes + wqe->data, sizeof(segment));
	return (be32toh(segment.byte_count) & ~MLX5_INLINE_SEG) > LIMIT_DELIVERED_AT_ONCE;
}

static bool build_message(struct hca_qp *qp, struct keyed_message *message, const struct send_kind kind)
{
	struct packet *packet = &message->packet;
	struct refusal ignored;

	if (wqe_take_segments(qp, &message->wqe, kind, &ignored) || is_long(&message->wqe) ||
	    requester_build(qp, &message->wqe, packet, kind, &ignored) || packet->dma_length > LIMIT_DELIVERED_AT_ONCE)
		return false;
	packet->psn = qp->requester.psn;
	if (!wqe_class_is_answered(kind.class))
		return true;
	/* requester/response.c handles data for the CQE. */
	if (qp->scatter_to_cqe)
		return false;
	qp->requester.progress.valid = false;
	return !wqe_scatter(&message->wqe, &qp->send_access, 0, packet->dma_length, &message->place, &ignored) &&
	       message->place.length == packet->dma_length;
}

/* Executes an atomic and stores its result in host byte order (mlx5-formats 1.5). */
static void message_execute_atomic(struct request *request, struct keyed_message *message)
{
	struct packet *packet = request->packet;
	uint64_t original = atomic_execute(request->access, packet, request->sink);
	uint32_t narrow = (uint32_t)original;

	responder_remember(request->responder, packet, original);
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload,
			  packet->dma_length == sizeof(narrow) ? (const uint8_t *)&narrow : (const uint8_t *)&original,
			  packet->dma_length);
	stream_copy(&message->place, &packet->payload, packet->dma_length);
}

/* Executes a checked request; only its invalidation can fail. */
static void execute_message(struct request *request, struct keyed_message *message, const struct request_kind kind)
{
	struct packet *packet = request->packet;

	if (kind.message == MESSAGE_READ_REQUEST) {
		responder_remember_read(request);
		if (packet->dma_length)
			stream_copy(&message->place, request->sink, packet->dma_length);
	} else if (message_is_atomic(kind.message)) {
		message_execute_atomic(request, message);
	} else {
		if (packet->payload.length)
			stream_copy(request->sink, &packet->payload, packet->payload.length);
		request->responder->offset += packet->payload.length;
	}
	responder_expect_next(request);
	if (kind.message == MESSAGE_SEND_INVALIDATE &&
	    invalidate_execute(request->access, packet->invalidate_rkey, &request->why))
		responder_fail_invalidation(request);
	else if (message_has(kind.message, MESSAGE_TAKES_RECEIVE | MESSAGE_TAKES_RECEIVE_LAST))
		responder_complete_message(request, kind);
}

/* Executes @message at @peer; both are locked. Returns false to fall back, with nothing changed. */
static bool execute_at_peer(struct hca_qp *qp, struct hca_qp *peer, struct keyed_message *message)
{
	const struct request_kind kind = {
		.transport = TRANSPORT_RC, .message = message->packet.message, .path = PATH_KEYS};
	struct request request;
	bool is_contiguous;

	if (!qp_is_peer_of(peer, qp) || !responder_check_fast(&request, peer, &message->packet, &message->sink, kind))
		return false;
	if (timeline_is_on())
		record_sent(qp, TIMELINE_CALL, message->wqe.index, &message->packet);
	is_contiguous = message->sink.whole &&
			(kind.message == MESSAGE_READ_REQUEST ? message->place.whole : message->packet.payload.whole);
	qp->requester.through_keys = !is_contiguous;
	execute_message(&request, message, kind);
	return true;
}

/* Parses and executes the next WQE. Returns false to fall back. */
static bool execute_next(struct hca_qp *qp, struct keyed_message *message, const struct send_kind kind)
{
	struct requester *requester = &qp->requester;
	struct packet *packet = &message->packet;
	struct refusal ignored;
	struct hca_qp *peer;
	bool done;

	if (wqe_take_control(qp, requester->next, wqe_posted(requester, requester->next), &message->wqe, kind,
			     &ignored) ||
	    wqe_opcodes[message->wqe.opcode].class != kind.class || !build_message(qp, message, kind))
		return false;
	peer = qp_find(packet->destination_qpn);
	if (!peer || peer == qp || !queue_try_lock(&peer->lock))
		return false;
	done = execute_at_peer(qp, peer, message);
	queue_unlock(&peer->lock);
	if (done)
		fast_path_finish(qp, &message->wqe, packet->count, packet->dma_length);
	return done;
}

static int execute_next_of_class(struct hca_qp *qp, uint8_t class)
{
	THREAD_VARIABLE(struct keyed_message, message);
	const struct send_kind kind = {.transport = TRANSPORT_RC, .class = class, .path = PATH_KEYS};

	if (likely(execute_next(qp, message, kind)))
		return (int)message->packet.dma_length;
	qp->requester.through_keys = false;
	return -1;
}

int fast_path_through_keys(struct hca_qp *qp)
{
	uint8_t class = wqe_opcodes[wqe_opcode_at(&qp->requester, qp->requester.next)].class;

	/* A fallback would report the access to an observer twice. */
	if (qp->hca->key_observer || (class != WQE_CLASS_WRITE && class != WQE_CLASS_SEND && class != WQE_CLASS_READ &&
				      class != WQE_CLASS_ATOMIC))
		return -1;
	return execute_next_of_class(qp, class);
}
