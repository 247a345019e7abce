/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path between two queue pairs of this process, from one contiguous region to another (transport/DESIGN.md).
 * Functions return false to fall back.
 */
#ifndef SOFTHCA_TRANSPORT_FAST_PATH_FAST_PATH_H
#define SOFTHCA_TRANSPORT_FAST_PATH_FAST_PATH_H

#include "core/tunables.h"
#include "observe/timeline.h"
#include "transport/fast_path/finish.h"
#include "transport/fast_path/keys.h"
#include "transport/requester/build.h"
#include "transport/responder/steps.h"

/* Finds the contiguous @place for everything that the READ or atomic @wqe fetches. */
static inline SPECIALISED bool fast_path_place(struct hca_qp *qp, const struct wqe *wqe, struct stream *place,
					       uint32_t *bytes)
{
	struct mlx5_wqe_data_seg segment;

	/* requester/response.c handles data for the CQE. */
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

/* Builds a packet with the whole message, and the @place for data of a READ or atomic. */
static inline SPECIALISED bool fast_path_build(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet,
					       struct stream *place, const struct send_kind kind)
{
	requester_fill_header(qp, wqe, packet, kind.transport);
	packet->psn = qp->requester.psn;
	if (kind.class == WQE_CLASS_READ || kind.class == WQE_CLASS_ATOMIC) {
		if (!fast_path_place(qp, wqe, place, &packet->dma_length))
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
	return likely(packet->dma_length <= LIMIT_FAST_PATH_BYTES);
}

/* Parses the segments between control and data. Returns false if one is missing. */
static inline SPECIALISED bool fast_path_take_segments(struct wqe *wqe, const struct send_kind kind,
						       struct refusal *why)
{
	const uint32_t remote = kind.class == WQE_CLASS_SEND ? 0 : sizeof(struct mlx5_wqe_raddr_seg);
	const uint32_t atomic = kind.class == WQE_CLASS_ATOMIC ? sizeof(struct mlx5_wqe_atomic_seg) : 0;

	if (unlikely(wqe->size - wqe->data < remote + atomic))
		return false;
	return (!remote || !wqe_take_remote(wqe, why)) && (!atomic || !wqe_take_atomic(wqe, why));
}

/*
 * Executes @wqe, whose control segment is valid, and adds the bytes copied to *@bytes. Only tries the lock of the peer,
 * since that of @qp is held: two threads that send to each other would deadlock.
 */
static inline SPECIALISED bool fast_path_execute(struct hca_qp *qp, struct wqe *wqe, uint32_t *bytes,
						 const struct send_kind kind, const uint8_t message)
{
	const struct request_kind request = {.transport = TRANSPORT_RC, .message = message, .path = PATH_FAST};
	struct packet packet;
	struct refusal why;
	struct stream place;
	struct hca_qp *peer;
	bool done;

	if (unlikely(!fast_path_take_segments(wqe, kind, &why)) ||
	    unlikely(!fast_path_build(qp, wqe, &packet, &place, kind)))
		return false;
	/* The same as in the table of opcodes, but a constant lets the compiler specialise. */
	packet.message = message;
	peer = qp_find(packet.destination_qpn);
	if (unlikely(!peer || peer == qp || !queue_try_lock(&peer->lock)))
		return false;
	done = qp_is_peer_of(peer, qp) && responder_execute_fast(peer, &packet, &place, request);
	queue_unlock(&peer->lock);
	if (unlikely(!done))
		return false;
	fast_path_finish(qp, wqe, packet.count, packet.dma_length);
	*bytes += packet.dma_length;
	return true;
}

static inline SPECIALISED bool fast_path_handles(uint8_t opcode)
{
	const uint32_t opcodes = 1u << MLX5_OPCODE_RDMA_WRITE | 1u << MLX5_OPCODE_SEND | 1u << MLX5_OPCODE_RDMA_READ |
				 1u << MLX5_OPCODE_ATOMIC_CS | 1u << MLX5_OPCODE_ATOMIC_FA;

	return opcode < 32 && opcodes >> opcode & 1;
}

/* Executes the next WQE, of which @posted blocks may be read, and adds the bytes copied to *@bytes. */
static inline SPECIALISED bool fast_path_contiguous(struct hca_qp *qp, uint32_t posted, uint32_t *bytes)
{
	struct send_kind kind = {.transport = TRANSPORT_RC, .path = PATH_FAST};
	struct refusal why;
	struct wqe wqe;

	if (unlikely(!fast_path_handles(wqe_opcode_at(&qp->requester, qp->requester.next))))
		return false;
	if (unlikely(wqe_take_control(qp, qp->requester.next, posted, &wqe, kind, &why)))
		return false;
	switch (wqe.opcode) {
	case MLX5_OPCODE_RDMA_WRITE:
		kind.class = WQE_CLASS_WRITE;
		return fast_path_execute(qp, &wqe, bytes, kind, MESSAGE_WRITE);
	case MLX5_OPCODE_SEND:
		kind.class = WQE_CLASS_SEND;
		return fast_path_execute(qp, &wqe, bytes, kind, MESSAGE_SEND);
	case MLX5_OPCODE_RDMA_READ:
		kind.class = WQE_CLASS_READ;
		return fast_path_execute(qp, &wqe, bytes, kind, MESSAGE_READ_REQUEST);
	case MLX5_OPCODE_ATOMIC_CS:
		kind.class = WQE_CLASS_ATOMIC;
		return fast_path_execute(qp, &wqe, bytes, kind, MESSAGE_COMPARE_SWAP);
	case MLX5_OPCODE_ATOMIC_FA:
		kind.class = WQE_CLASS_ATOMIC;
		return fast_path_execute(qp, &wqe, bytes, kind, MESSAGE_FETCH_ADD);
	default:
		return false;
	}
}

enum fast_path {
	FAST_PATH_DONE,     /* everything posted */
	FAST_PATH_YIELD,    /* everything so far; yield the lock before continuing */
	FAST_PATH_FALLBACK, /* the next WQE needs the run loop */
};

/**
 * Executes WQEs posted to @qp, whose lock is held; first through keys.h if the latest message did. @recorded: a
 * timeline is recorded, which needs the packets that only fast_path_through_keys() builds.
 */
static inline SPECIALISED enum fast_path fast_path(struct hca_qp *qp, const bool recorded)
{
	struct requester *requester = &qp->requester;
	uint32_t bytes = 0;

	/* QPs that wait for window space are woken by the run loop. */
	if (unlikely(!qp->in_process || qp->hca->filters || qp->stop_at_signature_error || requester->running ||
		     requester->first != requester->last || host_window_has_room()))
		return FAST_PATH_FALLBACK;
	for (unsigned int i = 0; i < TUNABLE_REQUESTER_ENDED_AT_ONCE && bytes <= LIMIT_FAST_PATH_BYTES; i++) {
		uint32_t posted;
		int keyed;

		if (unlikely(requester->state != REQUESTER_READY || requester->rnr_wait))
			return FAST_PATH_FALLBACK;
		posted = wqe_posted(requester, requester->next);
		if (!posted)
			return FAST_PATH_DONE;
		if (!recorded && likely(!requester->through_keys) && likely(fast_path_contiguous(qp, posted, &bytes)))
			continue;
		keyed = fast_path_through_keys(qp);
		if (unlikely(keyed < 0))
			return FAST_PATH_FALLBACK;
		bytes += (uint32_t)keyed;
	}
	return FAST_PATH_YIELD;
}

#endif
