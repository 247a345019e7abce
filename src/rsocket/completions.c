/* SPDX-License-Identifier: BSD-2-Clause */
/* See rdma-cm 5, "Stream protocol". */
#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/limit.h"
#include "rdmacm/devices.h"
#include "rsocket/wait.h"

enum { COMPLETIONS = 16, MOST_EXPLAINED = 8 };

void stream_break(struct rsocket *rs, int error)
{
	struct stream *stream = &rs->stream;

	if (stream->state == STREAM_DISCONNECTED || stream->state == STREAM_BROKEN)
		return;
	stream->state = STREAM_BROKEN;
	stream->readable = false;
	stream->writable = false;
	stream->reset = true;
	rs->error = error;
	/* A failed post has no completion that would wake sleeping threads. */
	rsocket_wake(rs);
}

/* Ends a connection whose peer broke the protocol, and ignores the message. */
static void stream_break_protocol(struct rsocket *rs, const struct ibv_wc *wc)
{
	uint32_t immediate = wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) : 0;
	const struct explain_subject subject = {
		.call = "rrecv", .qpn = rs->stream.id->qp->qp_num, .receive = true, .error = EPROTO};

	EXPLAIN_LIMITED(hca_of_id(NULL), &subject, MOST_EXPLAINED, RULE_RSOCKET_PROTOCOL, immediate >> STREAM_DATA_BITS,
			immediate & STREAM_DATA_MASK, wc->byte_len, rs->stream.granted);
	stream_break(rs, EPROTO);
}

static void stream_disconnected(struct stream *stream)
{
	if (stream->state != STREAM_CONNECTED)
		return;
	stream->state = STREAM_DISCONNECTED;
	stream->readable = false;
	stream->writable = false;
}

/* The following functions return false for a message that the peer may not send. */
static bool stream_data_arrived(struct stream *stream, uint32_t bytes)
{
	uint32_t next = stream->end_message == stream->receive_entries ? 0 : stream->end_message + 1;

	/* An empty message does not mean the end; it uses up a sequence number. */
	if (!bytes) {
		stream->received++;
		return true;
	}
	if (bytes > stream->granted || next == stream->first_message)
		return false;
	stream->granted -= bytes;
	stream->messages[stream->end_message] = bytes;
	stream->end_message = next;
	return true;
}

static bool stream_credit_arrived(struct stream *stream, uint32_t limit, uint32_t bytes)
{
	stream->sequence_limit = (uint16_t)limit;
	if (!bytes)
		return true;
	/* Each slot must be taken before it is written again. */
	if (bytes != sizeof(struct stream_target) || stream->announced == STREAM_TARGETS)
		return false;
	stream->announced++;
	return true;
}

bool stream_has_sent_all(const struct stream *stream)
{
	return stream->control_free == STREAM_CONTROL_ENTRIES &&
	       stream->entries_free == stream->send_entries - STREAM_CONTROL_ENTRIES;
}

/* Ends the stream when both ends have announced their end and the peer has everything sent before. */
static void stream_end_if_sent(struct stream *stream)
{
	if (stream->end_sent && stream->end_received && stream_has_sent_all(stream))
		stream_disconnected(stream);
}

static void stream_control_arrived(struct stream *stream, uint32_t control)
{
	if (control == STREAM_DISCONNECT)
		stream_disconnected(stream);
	if (control != STREAM_SHUTDOWN)
		return;
	stream->readable = false;
	stream->end_received = true;
	stream_end_if_sent(stream);
}

static bool stream_message_arrived(struct stream *stream, const struct ibv_wc *wc)
{
	uint32_t immediate = be32toh(wc->imm_data), data = immediate & STREAM_DATA_MASK;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		return false;
	switch (immediate >> STREAM_DATA_BITS) {
	case STREAM_OP_DATA:
		return stream_data_arrived(stream, data);
	case STREAM_OP_CREDIT:
		return stream_credit_arrived(stream, data, wc->byte_len);
	case STREAM_OP_MAPPING:
		/* The receive of the message is free again. */
		stream->received++;
		return true;
	case STREAM_OP_CONTROL:
		stream_control_arrived(stream, data);
		return true;
	default:
		return false;
	}
}

static void stream_request_completed(struct rsocket *rs, const struct ibv_wc *wc)
{
	struct stream *stream = &rs->stream;

	if ((uint32_t)wc->wr_id == STREAM_REQUEST_DATA) {
		stream->entries_free++;
		stream->send_free += (uint32_t)(wc->wr_id >> 32);
	} else {
		stream->control_free++;
	}
	if (wc->status != IBV_WC_SUCCESS)
		stream_break(rs, EIO);
	else if ((uint32_t)wc->wr_id == STREAM_REQUEST_DISCONNECT)
		stream_disconnected(stream);
	else
		stream_end_if_sent(stream);
}

static void stream_repost_receives(struct rsocket *rs, uint32_t count)
{
	struct ibv_recv_wr receives[COMPLETIONS], *bad;
	uint32_t index;
	int error;

	for (index = 0; index < count; index++)
		receives[index] = (struct ibv_recv_wr){.wr_id = STREAM_REQUEST_RECEIVE,
						       .next = index + 1 < count ? &receives[index + 1] : NULL};
	error = ibv_post_recv(rs->stream.id->qp, receives, &bad);
	if (error)
		stream_break(rs, error);
}

static int stream_poll_once(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	struct ibv_wc completions[COMPLETIONS];
	int count = ibv_poll_cq(stream->cq, COMPLETIONS, completions), index;
	uint32_t receives = 0;

	for (index = 0; index < count; index++) {
		const struct ibv_wc *wc = &completions[index];

		if ((uint32_t)wc->wr_id != STREAM_REQUEST_RECEIVE) {
			stream_request_completed(rs, wc);
			continue;
		}
		if (wc->status != IBV_WC_SUCCESS) {
			/* A flushed request: the completion of the one that caused the error may come later. */
			if (stream->state == STREAM_CONNECTED)
				stream_break(rs, EIO);
			continue;
		}
		receives++;
		/* The peer has the reply; its confirmation may have been lost. */
		if (stream->state == STREAM_ACCEPTING)
			stream->state = STREAM_CONNECTED;
		if (stream->state == STREAM_CONNECTED && !stream_message_arrived(stream, wc))
			stream_break_protocol(rs, wc);
	}
	if (receives && stream->state == STREAM_CONNECTED)
		stream_repost_receives(rs, receives);
	return count;
}

/*
 * Grants the peer a half of the ring that has been read, in the next slot of its list; otherwise sequence numbers only.
 */
static void stream_grant_once(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	uint32_t half = stream->receive_bytes / 2;
	struct stream_target *target =
		(struct stream_target *)(stream->send_ring + stream->send_bytes) + stream->control_slot;
	struct ibv_sge sge = {.addr = (uintptr_t)target, .length = sizeof(*target), .lkey = stream->send_mr->lkey};
	uint16_t limit = (uint16_t)(stream->received + stream->receive_entries);
	struct ibv_send_wr request =
				   {
					   .wr_id = STREAM_REQUEST_CONTROL,
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .imm_data = htobe32(stream_immediate(STREAM_OP_CREDIT, limit)),
				   },
			   *bad;
	int error;

	stream->renew_at = (uint16_t)(stream->received + stream->receive_entries / 2);
	if (stream->free_bytes >= half) {
		target->address = (uintptr_t)(stream->ring + stream->free_offset);
		target->key = stream->ring_mr->rkey;
		target->length = half;
		if (stream->swap)
			*target = (struct stream_target){.address = bswap_64(target->address),
							 .key = bswap_32(target->key),
							 .length = bswap_32(target->length)};
		request.sg_list = &sge;
		request.num_sge = 1;
		request.send_flags = sizeof(*target) <= stream->inline_bytes ? IBV_SEND_INLINE : 0;
		request.wr.rdma.remote_addr = stream->peer_list + stream->peer_slot * sizeof(*target);
		request.wr.rdma.rkey = stream->peer_list_key;
		stream->control_slot = (stream->control_slot + 1) % STREAM_CONTROL_ENTRIES;
		stream->peer_slot = (stream->peer_slot + 1) % stream->peer_slots;
		stream->free_bytes -= half;
		stream->free_offset = (stream->free_offset + half) % stream->receive_bytes;
		stream->granted += half;
	}
	stream->control_free--;
	error = ibv_post_send(stream->id->qp, &request, &bad);
	if (error)
		stream_break(rs, error);
}

void stream_grant(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	while (stream->state == STREAM_CONNECTED && stream->control_free &&
	       (stream->free_bytes >= stream->receive_bytes / 2 || (int16_t)(stream->received - stream->renew_at) >= 0))
		stream_grant_once(rs);
}

/*
 * Polls a limited number of completions, because a fast peer must not keep the thread here. An armed CQ holds no more
 * than the limit, so a notification follows for the rest.
 */
void stream_advance(struct rsocket *rs)
{
	uint32_t most = rs->stream.send_entries + rs->stream.receive_entries, taken = 0;
	int count = 1;

	while (taken < most && count > 0) {
		count = stream_poll_once(rs);
		taken += count > 0 ? (uint32_t)count : 0;
	}
	stream_grant(rs);
}

bool stream_arm(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	if (stream->armed)
		return false;
	stream->armed = !ibv_req_notify_cq(stream->cq, 0);
	return true;
}

void stream_notified(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	struct ibv_cq *cq;
	void *context;

	if (softhca_ibv_get_cq_event(stream->completions, &cq, &context))
		return;
	stream->armed = false;
	stream->events_taken++;
}

void stream_post_control(struct rsocket *rs, enum stream_control control)
{
	struct stream *stream = &rs->stream;
	struct ibv_send_wr request =
				   {
					   .wr_id = control == STREAM_DISCONNECT ? STREAM_REQUEST_DISCONNECT
										 : STREAM_REQUEST_CONTROL,
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .imm_data = htobe32(stream_immediate(STREAM_OP_CONTROL, control)),
				   },
			   *bad;
	int error;

	stream->control_free--;
	stream->end_sent |= control == STREAM_SHUTDOWN;
	error = ibv_post_send(stream->id->qp, &request, &bad);
	if (error)
		stream_break(rs, error);
}

bool stream_has_data(const struct rsocket *rs)
{
	return rs->stream.first_message != rs->stream.end_message;
}

/* Takes the next announced slot. It is read only once, because the peer may write to it at any time. */
static void stream_take_target(struct stream *stream)
{
	volatile struct stream_target *slot = &stream->list[stream->next_target];

	stream->announced--;
	stream->next_target = (stream->next_target + 1) % STREAM_TARGETS;
	stream->target = (struct stream_target){.address = slot->address, .key = slot->key, .length = slot->length};
}

bool stream_can_send(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	if (stream->state != STREAM_CONNECTED || !stream->writable)
		return false;
	while (!stream->target.length && stream->announced)
		stream_take_target(stream);
	return stream->target.length && stream->entries_free && stream->send_free >= STREAM_LOW_WATER &&
	       stream->sequence != stream->sequence_limit;
}
