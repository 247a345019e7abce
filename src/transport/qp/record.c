/* SPDX-License-Identifier: BSD-2-Clause */
/* The timeline's records of packets and queue pairs. */
#include "transport/qp/record.h"

#include <string.h>

#include "transport/qp/transport.h"

/* Returns the sender of @packet. Headers of connected transports do not name it: it is the peer of @qp, if any. */
static uint32_t sender_of(const struct hca_qp *qp, const struct packet *packet)
{
	uint32_t peer;

	if (packet->source_qpn)
		return packet->source_qpn;
	requester_peer(qp, &peer);
	return peer;
}

static uint32_t clip_length(uint64_t length)
{
	return length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

static uint32_t packet_bytes(const struct packet *packet)
{
	return packet->message == MESSAGE_READ_REQUEST ? packet->dma_length : clip_length(packet->payload.length);
}

static inline void record_put_packet(uint64_t time, uint32_t number, uint32_t what, const struct packet *packet,
				     uint32_t peer, uint32_t count)
{
	timeline_put(time, what, number, packet->psn, packet_bytes(packet),
		     TIMELINE_PACKETS(peer, count, packet->place));
}

/* Records a packet that is not a POST_SEND; out of line to save registers in the common case. */
static __attribute__((noinline)) void put_sent(uint64_t time, const struct hca_qp *qp, uint32_t what,
					       const struct packet *packet)
{
	/* It belongs to no WQE. */
	if (packet->message == MESSAGE_DISCONNECT)
		return;
	record_put_packet(time ? time : timeline_now(), qp->number, what, packet, packet->destination_qpn,
			  packet->count);
}

/* Returns true if a POST_SEND can record all of @packet. */
static inline bool is_small(const struct packet *packet, uint8_t opcode)
{
	return packet->count == 1 && packet->place == PLACE_ONLY && packet->message == wqe_opcodes[opcode].message &&
	       packet->payload.length <= UINT16_MAX && packet->message != MESSAGE_READ_REQUEST;
}

void record_sent(const struct hca_qp *qp, enum timeline_kind kind, uint16_t index, const struct packet *packet)
{
	/* The first request of a call has the call's time. */
	uint64_t time = timeline_time_of_call;
	struct timeline_record *posted = timeline_latest(time, TIMELINE_POST, qp->number);

	if (packet->message != MESSAGE_DISCONNECT)
		timeline_end_call();
	/* The request posted at this time is one packet: one record for both. */
	if (likely(posted && posted->index == index && kind != TIMELINE_SEND_AGAIN &&
		   is_small(packet, posted->opcode))) {
		uint32_t bytes = (uint32_t)packet->payload.length;

		timeline_change(posted,
				TIMELINE_WHAT(kind == TIMELINE_CALL ? TIMELINE_POST_CALL : TIMELINE_POST_SEND,
					      posted->opcode, index),
				TIMELINE_24_AND_8(packet->psn, bytes >> 8),
				TIMELINE_24_AND_8(packet->destination_qpn, bytes), posted->value);
		return;
	}
	put_sent(time, qp, TIMELINE_WHAT(kind, packet->message, index), packet);
}

void record_no_room(const struct hca_qp *qp)
{
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_NO_ROOM, 0, 0), qp->number, 0, 0, 0);
}

void record_local(const struct hca_qp *qp, uint16_t index, uint8_t opcode)
{
	/* The WQE took time, so its completions get the time of its end. */
	timeline_end_call();
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_LOCAL, opcode, index), qp->number, 0, 0, 0);
}

void record_arrived(const struct hca_qp *qp, const struct packet *packet, uint32_t count)
{
	record_put_packet(timeline_now(), qp->number, TIMELINE_WHAT(TIMELINE_ARRIVE, packet->message, packet->syndrome),
			  packet, sender_of(qp, packet), count);
}

void record_acknowledged(const struct hca_qp *qp, const struct packet *packet)
{
	timeline_begin_call(timeline_now());
	timeline_put(timeline_time(), TIMELINE_WHAT(TIMELINE_ARRIVE, packet->message, packet->syndrome), qp->number,
		     packet->psn, 0, TIMELINE_PACKETS(sender_of(qp, packet), 1, packet->place));
}

void record_answer(const struct hca_qp *qp, const struct packet *packet)
{
	record_put_packet(timeline_now(), qp->number, TIMELINE_WHAT(TIMELINE_ANSWER, packet->message, packet->syndrome),
			  packet, packet->destination_qpn, packet->count);
}

void record_stopped(const struct hca_qp *qp, const struct packet *packet, uint8_t from, uint8_t to, uint32_t expected,
		    uint32_t rule)
{
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_STOP, from, to), qp->number, expected, rule,
		     TIMELINE_PACKETS(sender_of(qp, packet), packet->count, packet->place));
}

void record_timeout(const struct hca_qp *qp, uint32_t psn)
{
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_TIMEOUT, 0, 0), qp->number, psn, 0, 0);
}

void record_state(const struct hca_qp *qp)
{
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_STATE, qp->requester.state, 0), qp->number, 0, 0, 0);
}

void record_qp(struct hca_qp *qp)
{
	struct timeline_qp entry = {
		.number = qp->number,
		.peer = qp->transport->connected && !qp->transport->any_peer ? qp->attr.dest_qp_num : 0,
		.send_cq = qp->send_cq ? qp->send_cq->number : 0,
		.recv_cq = qp->recv_cq ? qp->recv_cq->number : 0,
		.device = (uint32_t)qp->hca->index,
		.type = (uint32_t)qp->type,
	};

	/* Datagram QPs have no path. */
	memcpy(entry.source, qp->path.source.raw, sizeof(entry.source));
	memcpy(entry.destination, qp->path.destination.raw, sizeof(entry.destination));
	timeline_put_qp(&qp->timeline_row, &entry);
}
