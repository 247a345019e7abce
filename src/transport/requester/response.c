/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles acknowledgements, refusals and responses. */
#include <string.h>

#include "core/thread_memory.h"
#include "observe/counters.h"
#include "transport/qp/dci.h"
#include "transport/qp/origin.h"
#include "transport/requester/acknowledge.h"
#include "transport/requester/wqe_parse.h"

#define MOST_SCATTERED 64 /* into a CQE of 128 bytes */

static void widen_window(struct hca_qp *qp)
{
	const struct link *link = qp->dci ? qp->dci->target.link : qp->link;

	uint32_t most = link ? link_window(qp->hca, link) : 0;

	if (qp->requester.window >= most)
		return;
	qp->requester.window += 2u << qp->mtu_shift;
	if (qp->requester.window > most)
		qp->requester.window = most;
}

/* Skips packets acknowledged before their retransmission. */
static void skip_acknowledged(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	const struct inflight *entry;
	int32_t offset;

	if (requester->send_entry == requester->last)
		return;
	entry = inflight_at(requester, requester->send_entry);
	offset = psn_distance(psn_add(requester->acknowledged, 1), entry->psn);
	if (entry->packets && !entry->responds && offset > (int32_t)requester->send_offset &&
	    (uint32_t)offset <= entry->packets)
		requester->send_offset = (uint32_t)offset;
}

void requester_window_moved(struct hca_qp *qp)
{
	skip_acknowledged(qp);
	widen_window(qp);
}

/* Finds the FIFO @position of @psn. Returns false if there is none. */
static bool inflight_find(struct requester *requester, uint32_t psn, uint32_t *position)
{
	for (uint32_t i = requester->first; i != requester->last; i++) {
		struct inflight *entry = inflight_at(requester, i);
		int32_t distance = psn_distance(psn, entry->psn);

		if (entry->packets && distance >= 0 && (uint32_t)distance < entry->packets) {
			*position = i;
			return true;
		}
	}
	return false;
}

static struct refusal nak_refusal(const struct hca_qp *qp, enum explain_rule rule, const struct packet *packet)
{
	struct refusal why = {rule, {packet->psn}};
	uint32_t peer;

	requester_peer(qp, &peer);
	why.args[1] = peer;
	origin_of_peer(qp, why.args + 2);
	why.args[2 + EXPLAIN_ORIGIN] = packet->peer_rule;
	return why;
}

static void fail_refused(struct hca_qp *qp, const struct packet *packet)
{
	static const struct {
		uint8_t syndrome;
		enum explain_rule rule;
	} codes[] = {
		[NAK_INVALID_REQUEST] = {MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_NAK_INVALID_REQUEST},
		[NAK_REMOTE_ACCESS] = {MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, RULE_NAK_REMOTE_ACCESS},
		[NAK_REMOTE_OPERATION] = {MLX5_CQE_SYNDROME_REMOTE_OP_ERR, RULE_NAK_REMOTE_OPERATION},
	};
	uint8_t code = packet->syndrome & AETH_CODE_MASK;
	struct refusal why = packet->why;

	if (code >= sizeof(codes) / sizeof(codes[0]))
		code = NAK_INVALID_REQUEST;
	if (why.rule == RULE_NONE)
		why = nak_refusal(qp, codes[code].rule, packet);
	requester_fail_front(qp, codes[code].syndrome, &why);
}

/* IBTA C9-116: a NAK acknowledges all packets before its own. */
static void requester_handle_nak(struct hca_qp *qp, const struct packet *packet, struct run *run)
{
	struct requester *requester = &qp->requester;
	uint32_t position;
	bool sequence;

	requester_acknowledge(qp, false, psn_add(packet->psn, PSN_MASK), run);
	if (!inflight_find(requester, packet->psn, &position) || position != requester->first)
		return;
	requester_go_back(qp, position, (uint32_t)psn_distance(packet->psn, inflight_at(requester, position)->psn));
	if ((packet->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK) {
		counter_add(qp->hca, COUNTER_RNR_NAKS_RECEIVED, 1);
		/* A copy: nothing was sent since the last RNR NAK. */
		if (!requester->rnr_wait)
			requester_retry_later(qp, packet);
		return;
	}
	sequence = (packet->syndrome & AETH_CODE_MASK) == NAK_SEQUENCE;
	counter_add(qp->hca, sequence ? COUNTER_SEQUENCE_NAKS_RECEIVED : COUNTER_ERROR_NAKS_RECEIVED, 1);
	if (sequence)
		requester_narrow_window(qp);
	if (sequence && requester_may_retry(qp))
		requester_go_on(qp, run);
	else if (sequence)
		requester_give_up(qp);
	else
		fail_refused(qp, packet);
}

/*
 * Returns true if the response goes into the CQE (mlx5-formats 3.2): all of it fits, there is a CQE, and @sink is at
 * the address in the WQE, because the reader of the CQE copies there without using keys.
 */
static bool belongs_into_cqe(const struct hca_qp *qp, const struct inflight *entry, const struct wqe *wqe,
			     const struct stream *sink, uint64_t length)
{
	struct mlx5_wqe_data_seg segment;

	if (!length || length != entry->bytes || length > cq_scatter_room(qp->send_cq) ||
	    WQE_COMPLETION(entry->fm_ce_se) < WQE_CQE_ALWAYS || wqe->size - wqe->data != sizeof(segment))
		return false;
	memcpy(&segment, wqe->bytes + wqe->data, sizeof(segment));
	return sink->whole && (uintptr_t)sink->whole == be64toh(segment.addr);
}

/* Data for a CQE. */
struct scattered {
	uint8_t bytes[MOST_SCATTERED];
	bool used;
};

/* Copies a piece of a response to memory, or all of it into @scattered. Returns false after requester_fail_front(). */
static bool response_scatter(struct hca_qp *qp, struct inflight *entry, uint64_t offset, struct stream *payload,
			     struct scattered *scattered)
{
	THREAD_VARIABLE(struct stream, sink);
	struct refusal why;
	struct wqe wqe;
	int syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;

	if (!offset)
		qp->requester.progress.valid = false;
	qp->send_access.unfinished = qp->send_access.more = offset + payload->length < entry->bytes;
	if (!wqe_parse(qp, entry->index, entry->blocks, &wqe, &why))
		syndrome = wqe_scatter(&wqe, &qp->send_access, offset, payload->length, sink, &why);
	if (!syndrome && sink->length != payload->length) {
		syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		why = (struct refusal){RULE_WQE_CHANGED,
				       {wqe.opcode, offset + sink->length, entry->opcode, entry->bytes}};
	}
	scattered->used = !syndrome && qp->scatter_to_cqe && belongs_into_cqe(qp, entry, &wqe, sink, payload->length);
	if (scattered->used)
		stream_read(payload, scattered->bytes, payload->length);
	else if (!syndrome && payload->length)
		stream_copy(sink, payload, payload->length);
	qp->send_access.unfinished = qp->send_access.more = false;
	if (syndrome)
		requester_fail_front(qp, (uint8_t)syndrome, &why);
	return !syndrome;
}

/* Completes the front of the FIFO with data in the CQE. */
static void complete_scattered(struct hca_qp *qp, const struct inflight *entry, const struct scattered *scattered)
{
	struct requester *requester = &qp->requester;
	struct completion completion = requester_completion(qp, MLX5_CQE_REQ, entry->opcode, entry->fm_ce_se,
							    entry->index, entry->bytes, 0, RULE_NONE);

	completion.scattered = scattered->bytes;
	if (requester->send_entry == requester->first) {
		requester->send_entry++;
		requester->send_offset = 0;
	}
	requester->first++;
	qp_complete(qp, qp->send_cq, completion);
}

static void response_complete(struct hca_qp *qp, struct inflight *entry, const struct scattered *scattered,
			      struct run *run)
{
	entry->done = true;
	qp->requester.responses_due--;
	requester_progressed(qp, false);
	if (scattered->used)
		complete_scattered(qp, entry, scattered);
	requester_complete_front(qp);
	requester_go_on(qp, run);
}

static void bad_response(struct hca_qp *qp, const struct packet *packet, const struct inflight *entry)
{
	struct refusal why = {RULE_BAD_RESPONSE,
			      {packet->message, packet->psn, packet->payload.length, entry->arrived, entry->bytes}};

	requester_fail_front(qp, MLX5_CQE_SYNDROME_BAD_RESP_ERR, &why);
}

/*
 * IBTA 9.7.5.2.3: an unexpected response implies a NAK, because those before it were lost. Requests them once for each
 * gap, since more packets in flight may arrive first.
 */
static void response_ask_again(struct hca_qp *qp, struct run *run)
{
	struct requester *requester = &qp->requester;

	if (requester->requested_again)
		return;
	requester->requested_again = true;
	counter_add(qp->hca, COUNTER_IMPLIED_NAKS, 1);
	requester_narrow_window(qp);
	requester_go_back(qp, requester->first, 0);
	if (requester_may_retry(qp))
		requester_go_on(qp, run);
	else
		requester_give_up(qp);
}

static void read_response(struct hca_qp *qp, struct packet *packet, struct inflight *entry, struct run *run)
{
	uint64_t offset = (uint64_t)psn_distance(packet->psn, entry->psn) << qp->mtu_shift;
	uint64_t bytes, room, left = entry->requested - entry->arrived;
	bool last = packet->place & PLACE_LAST;
	struct scattered scattered;

	/* The run begins with received packets. */
	if (offset < entry->arrived && offset + packet->payload.length > entry->arrived) {
		uint64_t known = (entry->arrived - offset) >> qp->mtu_shift;

		if (known < packet->count) {
			packet_leave_out(packet, (uint32_t)known, qp->mtu_shift);
			offset += known << qp->mtu_shift;
		}
	}
	bytes = packet->payload.length;
	room = (uint64_t)packet->count << qp->mtu_shift;
	if (offset != entry->arrived) {
		if (offset > entry->arrived)
			response_ask_again(qp, run);
		return;
	}
	/* All packets but the last are full, and only the last contains the last requested byte. */
	if (bytes > left || last != (bytes == left) || bytes > room || (!last && bytes < room)) {
		bad_response(qp, packet, entry);
		return;
	}
	if (!response_scatter(qp, entry, offset, &packet->payload, &scattered))
		return;
	entry->arrived += (uint32_t)bytes;
	/* IBTA C9-117. */
	qp->requester.acknowledged = psn_add(packet->psn, packets_of(bytes, qp->mtu_shift) - 1);
	if (entry->arrived == entry->bytes) {
		response_complete(qp, entry, &scattered, run);
		return;
	}
	/* The rest has its own timeout and retries. */
	requester_progressed(qp, false);
	requester_go_on(qp, run);
}

/* In a CQE an atomic's result is big-endian (mlx5-formats 1.5, 3.2). */
static void put_network_order(uint8_t *bytes, uint64_t value, uint32_t count)
{
	for (; count; value >>= 8)
		bytes[--count] = (uint8_t)value;
}

static void atomic_response(struct hca_qp *qp, struct packet *packet, struct inflight *entry, struct run *run)
{
	uint32_t narrow = (uint32_t)packet->original;
	bool is_narrow = entry->bytes == sizeof(narrow);
	struct scattered scattered;

	/* In host byte order (mlx5-formats 1.5). */
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, is_narrow ? (const uint8_t *)&narrow : (const uint8_t *)&packet->original,
			  entry->bytes);
	if (!response_scatter(qp, entry, 0, &packet->payload, &scattered))
		return;
	if (scattered.used)
		put_network_order(scattered.bytes, packet->original, entry->bytes);
	qp->requester.acknowledged = packet->psn;
	response_complete(qp, entry, &scattered, run);
}

/* IBTA annex A19: the response has no payload. */
static void atomic_write_response(struct hca_qp *qp, const struct packet *packet, struct inflight *entry,
				  struct run *run)
{
	if (packet->payload.length || packet->place != PLACE_ONLY) {
		bad_response(qp, packet, entry);
		return;
	}
	qp->requester.acknowledged = packet->psn;
	response_complete(qp, entry, &(const struct scattered){.used = false}, run);
}

static void requester_handle_response(struct hca_qp *qp, struct packet *packet, struct run *run)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry;
	uint32_t position;
	bool atomic = packet->message == MESSAGE_ATOMIC_ACKNOWLEDGE;
	uint8_t class;

	if (!inflight_find(requester, packet->psn, &position))
		return;
	entry = inflight_at(requester, position);
	/* A response acknowledges earlier requests (IBTA C9-117). */
	requester_acknowledge(qp, false, psn_add(entry->psn, PSN_MASK), run);
	if (position != requester->first || entry->done)
		return;
	class = wqe_opcodes[entry->opcode].class;
	if (!entry->responds || atomic != (class == WQE_CLASS_ATOMIC))
		bad_response(qp, packet, entry);
	else if (atomic)
		atomic_response(qp, packet, entry, run);
	else if (class == WQE_CLASS_ATOMIC_WRITE)
		atomic_write_response(qp, packet, entry, run);
	else
		read_response(qp, packet, entry, run);
}

void requester_receive(struct hca_qp *qp, struct packet *packet, struct run *run)
{
	if (!qp->transport->reliable || qp->requester.state == REQUESTER_IDLE)
		return;
	/* The answer may be for a failed stream. */
	if (qp->dci && qp->dci->flushing)
		return;
	/* IBTA 9.7.5.1.2: answers to packets not yet sent are ignored. */
	if (psn_distance(packet->psn, qp->requester.newest) >= 0)
		return;
	host_window_received(qp);
	switch (packet->message) {
	case MESSAGE_READ_RESPONSE:
	case MESSAGE_ATOMIC_ACKNOWLEDGE:
		requester_handle_response(qp, packet, run);
		break;
	default:
		if ((packet->syndrome & AETH_KIND_MASK) != AETH_ACK) {
			requester_handle_nak(qp, packet, run);
			break;
		}
		requester_acknowledge(qp, false, packet->psn, run);
	}
	requester_settle(qp);
	/* If a stream has ended, others continue. */
	if (qp->dci)
		requester_go_on(qp, run);
}

void requester_receive_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run)
{
	const struct requester *requester = &qp->requester;

	/* As in requester_receive(). */
	if (unlikely(requester->state == REQUESTER_IDLE || psn_distance(psn, requester->newest) >= 0))
		return;
	if (unlikely(requester->share.process != NULL))
		host_window_received(qp);
	requester_acknowledge(qp, true, psn, run);
	if (unlikely(requester->share.packets))
		requester_settle(qp);
}
