/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message to a queue pair in this process, of one piece of memory to one piece of memory, which nothing speaks against: the steps
 * of requester and responder one after the other, without packets between them and compiled into one function. Nearly all
 * small messages within a process are such. Anything else ends the trial, and goes the way that all messages can go.
 */
#ifndef SOFTHCA_TRANSPORT_TRIAL_H
#define SOFTHCA_TRANSPORT_TRIAL_H

#include "device/timeline.h"
#include "transport/requester_build.h"
#include "transport/responder_steps.h"

/* The place of all bytes that the READ or atomic @wqe asks for, if it is one; else false. */
SPECIALISED bool trial_place(struct hca_qp *qp, const struct wqe *wqe, struct stream *place, uint32_t *bytes)
{
	struct mlx5_wqe_data_seg segment;

	/* What may go into the CQE takes the way of a response that was waited for. */
	if (unlikely(qp->scatter_to_cqe || wqe->size - wqe->data != sizeof(segment)))
		return false;
	memcpy(&segment, wqe->bytes + wqe->data, sizeof(segment));
	*bytes = be32toh(segment.byte_count);
	if (unlikely(*bytes & MLX5_INLINE_SEG))
		return false;
	qp->requester.progress.valid = false;
	stream_begin(place, &qp->send_access, RIGHT_LOCAL_WRITE);
	return stream_add_plain(place, be32toh(segment.lkey), be64toh(segment.addr), *bytes, false);
}

/* The packet with all of the message of @wqe, and the @place of the bytes that a READ or atomic brings; false: the trial ends. */
SPECIALISED bool trial_ask(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct stream *place,
			   const struct send_kind kind)
{
	requester_fill_header(qp, wqe, packet, kind.transport);
	packet->psn = qp->requester.psn;
	if (kind.class == WQE_CLASS_READ || kind.class == WQE_CLASS_ATOMIC) {
		if (!trial_place(qp, wqe, place, &packet->dma_length))
			return false;
		packet->swap_add = wqe->swap_add;
		packet->compare = wqe->compare;
		packet->operand_bytes = sizeof(uint64_t);
		if (kind.class == WQE_CLASS_ATOMIC && unlikely(packet->dma_length != sizeof(uint64_t)))
			return false;
	} else {
		if (unlikely(!wqe_gather_plain(wqe, &qp->send_access, &packet->payload)))
			return false;
		packet->dma_length = (uint32_t)packet->payload.length;
	}
	packet->count = packets_of(packet->dma_length, qp->mtu_shift);
	return likely(packet->dma_length <= LIMIT_TRIED_AT_ONCE);
}

/* The message of @wqe, of @packets with @bytes, has arrived: as if it had been in flight and were the front of the FIFO. */
SPECIALISED void trial_end(struct hca_qp *qp, const struct wqe *wqe, uint32_t packets, uint32_t bytes)
{
	struct requester *requester = &qp->requester;

	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester->acknowledged = psn_add(requester->psn, packets - 1);
	requester->psn = requester->newest = psn_add(requester->psn, packets);
	if (WQE_COMPLETION(wqe->fm_ce_se) >= WQE_CQE_ALWAYS)
		requester_complete_send(qp, MLX5_CQE_REQ, wqe->opcode, wqe->fm_ce_se, wqe->index, bytes, 0, RULE_NONE);
}

/* What comes between the control and the data segments of @wqe; false: it is not there. */
SPECIALISED bool trial_take_segments(struct wqe *wqe, const struct send_kind kind, struct refusal *why)
{
	const uint32_t remote = kind.class == WQE_CLASS_SEND ? 0 : sizeof(struct mlx5_wqe_raddr_seg);
	const uint32_t atomic = kind.class == WQE_CLASS_ATOMIC ? sizeof(struct mlx5_wqe_atomic_seg) : 0;

	if (unlikely(wqe->size - wqe->data < remote + atomic))
		return false;
	return (!remote || !wqe_take_remote(wqe, why)) && (!atomic || !wqe_take_atomic(wqe, why));
}

/*
 * @wqe, whose control segment is good; *@bytes more are copied. The lock of @qp is held, so that of the peer is only tried: two
 * threads that send to each other would else wait for each other.
 */
SPECIALISED bool trial_of_kind(struct hca_qp *qp, struct wqe *wqe, uint32_t *bytes, const struct send_kind kind,
			       const uint8_t message)
{
	const struct request_kind request = {
		.transport = TRANSPORT_RC, .message = message, .plain = true, .by_return = true, .trial = true};
	struct packet packet;
	struct refusal why;
	struct stream place;
	struct hca_qp *peer;
	bool done;

	if (unlikely(!trial_take_segments(wqe, kind, &why)) || unlikely(!trial_ask(qp, wqe, &packet, &place, kind)))
		return false;
	/* As a constant. */
	packet.message = message;
	peer = qp_find(packet.destination_qpn);
	if (unlikely(!peer || peer == qp || !queue_try_lock(&peer->lock)))
		return false;
	done = qp_answers_by_return(peer, qp) && go_straight(peer, &packet, &place, request);
	queue_unlock(&peer->lock);
	if (unlikely(!done))
		return false;
	trial_end(qp, wqe, packet.count, packet.dma_length);
	*bytes += packet.dma_length;
	return true;
}

/* True if WQEs with @opcode are tried. */
SPECIALISED bool trial_is_of(uint8_t opcode)
{
	const uint32_t opcodes = 1u << MLX5_OPCODE_RDMA_WRITE | 1u << MLX5_OPCODE_SEND | 1u << MLX5_OPCODE_RDMA_READ |
				 1u << MLX5_OPCODE_ATOMIC_CS | 1u << MLX5_OPCODE_ATOMIC_FA;

	return opcode < 32 && opcodes >> opcode & 1;
}

/* The next WQE, of which @posted blocks may be looked at; *@bytes more are copied. */
SPECIALISED bool trial_next(struct hca_qp *qp, uint32_t posted, uint32_t *bytes)
{
	struct send_kind kind = {.transport = TRANSPORT_RC, .plain = true, .by_return = true, .trial = true};
	struct refusal why;
	struct wqe wqe;

	if (unlikely(!trial_is_of(wqe_opcode_at(&qp->requester, qp->requester.next))))
		return false;
	if (unlikely(wqe_take_control(qp, qp->requester.next, posted, &wqe, kind, &why)))
		return false;
	switch (wqe.opcode) {
	case MLX5_OPCODE_RDMA_WRITE:
		kind.class = WQE_CLASS_WRITE;
		return trial_of_kind(qp, &wqe, bytes, kind, MESSAGE_WRITE);
	case MLX5_OPCODE_SEND:
		kind.class = WQE_CLASS_SEND;
		return trial_of_kind(qp, &wqe, bytes, kind, MESSAGE_SEND);
	case MLX5_OPCODE_RDMA_READ:
		kind.class = WQE_CLASS_READ;
		return trial_of_kind(qp, &wqe, bytes, kind, MESSAGE_READ_REQUEST);
	case MLX5_OPCODE_ATOMIC_CS:
		kind.class = WQE_CLASS_ATOMIC;
		return trial_of_kind(qp, &wqe, bytes, kind, MESSAGE_COMPARE_SWAP);
	case MLX5_OPCODE_ATOMIC_FA:
		kind.class = WQE_CLASS_ATOMIC;
		return trial_of_kind(qp, &wqe, bytes, kind, MESSAGE_FETCH_ADD);
	default:
		return false;
	}
}

enum trial {
	TRIAL_COMPLETE, /* nothing is posted that has not arrived and is completed */
	TRIAL_PAUSE,    /* the same as far as it goes; others shall have the lock now */
	TRIAL_ENDS,     /* the next WQE does not go straight through: start it */
};

/** Tries all that is posted to @qp, whose lock is held. */
SPECIALISED enum trial trial(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	uint32_t bytes = 0;

	/* By return; and the timeline tells of packets, and who waits for room gets it from a run. */
	if (unlikely(!qp->by_return || qp->hca->filters || qp->stop_at_signature_error || requester->running ||
		     requester->first != requester->last || timeline_is_on() || host_window_has_room()))
		return TRIAL_ENDS;
	for (unsigned int i = 0; i < TUNABLE_REQUESTER_ENDED_AT_ONCE && bytes <= LIMIT_TRIED_AT_ONCE; i++) {
		uint32_t posted;

		if (unlikely(requester->state != REQUESTER_READY || requester->rnr_wait))
			return TRIAL_ENDS;
		posted = wqe_posted(requester, requester->next);
		if (!posted)
			return TRIAL_COMPLETE;
		if (unlikely(!trial_next(qp, posted, &bytes)))
			return TRIAL_ENDS;
	}
	return TRIAL_PAUSE;
}

#endif
