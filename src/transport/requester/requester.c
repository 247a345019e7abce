/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester, see transport/DESIGN.md. */
#include <string.h>

#include "observe/counters.h"
#include "progress/progress.h"
#include "transport/qp/dci.h"
#include "transport/qp/inherited.h"
#include "transport/qp/record.h"
#include "transport/requester/acknowledge.h"
#include "transport/requester/build.h"
#include "transport/requester/direct.h"
#include "transport/requester/send.h"
#include "transport/requester/wqe_parse.h"
#include "wire/link.h"

/* Value chosen for speed: with more requests in flight, a program streams rather than waits for each. */
enum { REQUESTER_STREAM = 4 };

/*
 * Returns true if @wqe must wait: a fence waits for READs and atomics (mlx5-formats 1.3), of which no more may be in
 * flight than the peer has resources for (IBTA C10-79). With max_rd_atomic 0 one may be, as on a ConnectX.
 */
static inline SPECIALISED bool requester_must_wait(const struct hca_qp *qp, const struct wqe *wqe, uint8_t class)
{
	uint32_t most = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;

	if (likely(!qp->requester.responses_due))
		return false;
	if (WQE_FENCE_WAITS(WQE_FENCE(wqe->fm_ce_se)))
		return true;
	return wqe_class_is_answered(class) && qp->requester.responses_due >= most;
}

/* mlx5dv_dci_stream_id_reset(3): requests on a stream in error are flushed in queue order. */
static enum progress flush_start(struct hca_qp *qp, const struct wqe *wqe)
{
	struct requester *requester = &qp->requester;

	if (requester->first != requester->last)
		return PROGRESS_NONE;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester_flush_one(qp, &(struct inflight){.index = wqe->index,
						   .stream = wqe->stream,
						   .opcode = wqe->opcode,
						   .fm_ce_se = wqe->fm_ce_se});
	return PROGRESS_MADE;
}

/* Advances past @packet, which has left. */
static inline SPECIALISED void has_left(struct hca *hca, struct requester *requester, const struct packet *packet)
{
	struct inflight *entry;
	uint32_t behind;

	entry = inflight_at(requester, requester->send_entry);
	behind = psn_add(packet->psn, packet->count);
	if (likely(psn_distance(behind, requester->newest) > 0))
		requester->newest = behind;
	else
		counter_add(hca, COUNTER_PACKETS_RESENT, packet->count);
	requester->send_offset += packet->count;
	if (requester->send_offset < entry->packets)
		return;
	requester->send_entry++;
	requester->send_offset = 0;
}

/* Puts @wqe with its message @packet in flight. */
static inline SPECIALISED struct inflight *requester_enter_flight(struct hca_qp *qp, const struct wqe *wqe,
								  const struct packet *packet, uint8_t class)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry;

	/* Nothing is in flight, however earlier requests ended. */
	if (requester->first == requester->last)
		requester->acknowledged = psn_add(requester->psn, PSN_MASK);
	entry = requester_push(requester, wqe);
	entry->psn = requester->psn;
	entry->packets = packet->count;
	entry->bytes = packet->dma_length;
	entry->responds = wqe_class_is_answered(class);
	requester->responses_due += entry->responds;
	requester->psn = psn_add(requester->psn, packet->count);
	return entry;
}

/* Sends the whole message of @wqe. */
static inline SPECIALISED enum progress requester_send_whole(struct hca_qp *qp, const struct wqe *wqe,
							     struct packet *packet, struct run *run,
							     const struct send_kind kind)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry = requester_enter_flight(qp, wqe, packet, kind.class);

	entry->requested = entry->bytes;
	if (timeline_is_on())
		record_sent(qp, TIMELINE_SEND, wqe->index, packet);
	/*
	 * Must not overtake packets held back by another link: link_send() checks that, and waits if the link is full.
	 */
	if (unlikely(__atomic_load_n(&link_holding, __ATOMIC_ACQUIRE) ||
		     packet->link->send(qp->hca, run) == LINK_BUSY)) {
		if (timeline_is_on())
			record_no_room(qp);
		return PROGRESS_PACKET;
	}
	/* As has_left(), for a new packet. */
	requester->newest = requester->psn;
	requester->send_entry = requester->last;
	return PROGRESS_MADE;
}

static inline SPECIALISED enum progress start_message(struct hca_qp *qp, const struct wqe *wqe, struct packet *packet,
						      struct run *run, const struct send_kind kind)
{
	struct inflight *entry;
	struct refusal why;
	struct wqe spilled;
	int syndrome = requester_build(qp, wqe, packet, kind, &why);

	if (unlikely(syndrome))
		return requester_fail_start(qp, SPILL(&spilled, wqe), (uint8_t)syndrome, &why);
	packet->psn = qp->requester.psn;
	if (kind.path == PATH_RC && (kind.class == WQE_CLASS_WRITE || kind.class == WQE_CLASS_READ) &&
	    unlikely(__atomic_load_n(&link_has_access, __ATOMIC_RELAXED)) &&
	    direct_execute(qp, SPILL(&spilled, wqe), packet))
		return PROGRESS_MADE;
	if (kind.path == PATH_RC && qp->whole && likely(packet->dma_length <= qp->whole))
		return requester_send_whole(qp, wqe, packet, run, kind);
	if (kind.path == PATH_GENERAL && qp->dci) {
		switch (dci_connect(qp, wqe->stream, packet)) {
		case DCI_WAIT:
			return PROGRESS_NONE;
		case DCI_LEAVE:
			return PROGRESS_PACKET;
		case DCI_CONNECTED:
			break;
		}
	}
	packet->psn = qp->requester.psn;
	entry = requester_enter_flight(qp, wqe, packet, kind.class);
	if (!requester_fits(qp, entry, packet))
		return PROGRESS_MADE;
	entry->requested = entry->bytes;
	return PROGRESS_PACKET;
}

/* Starts a message with a valid control segment. */
static inline SPECIALISED enum progress start_kind(struct hca_qp *qp, struct wqe *wqe, struct packet *packet,
						   struct run *run, const struct send_kind kind)
{
	struct refusal why;
	struct wqe spilled;

	if (unlikely(wqe_take_segments(qp, wqe, kind, &why)))
		return requester_fail_start(qp, SPILL(&spilled, wqe), MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, &why);
	if (requester_must_wait(qp, wqe, kind.class))
		return PROGRESS_NONE;
	return start_message(qp, wqe, packet, run, kind);
}

/* Returns true if an opcode of this class sends packets. Others may take long, and need none. */
static bool class_sends(uint8_t class)
{
	return class == WQE_CLASS_SEND || class == WQE_CLASS_WRITE || class == WQE_CLASS_READ ||
	       class == WQE_CLASS_ATOMIC || class == WQE_CLASS_ATOMIC_WRITE;
}

static __attribute__((noinline)) enum progress start_other(struct hca_qp *qp, struct wqe *wqe, struct run *run)
{
	const struct send_kind kind = {.transport = *qp->transport, .class = wqe_opcodes[wqe->opcode].class};

	if (class_sends(kind.class))
		return start_kind(qp, wqe, run_slot(run), run, kind);
	if (requester_must_wait(qp, wqe, kind.class))
		return PROGRESS_NONE;
	return requester_start_local(qp, wqe);
}

/* @posted: announced blocks. */
static inline SPECIALISED enum progress start_next(struct hca_qp *qp, uint32_t posted, struct packet *packet,
						   struct run *run, const enum path path)
{
	struct requester *requester = &qp->requester;
	const struct transport rc = TRANSPORT_RC;
	struct send_kind kind = {.transport = path == PATH_GENERAL ? *qp->transport : rc, .path = path};
	struct refusal why;
	struct wqe wqe, spilled;
	int error;

	/* The FIFO holds no more WQEs than the ring, though a program can overwrite WQEs that have not completed. */
	if (!posted || unlikely(requester->last - requester->first == requester->block_count))
		return PROGRESS_NONE;
	error = wqe_take_control(qp, requester->next, posted, &wqe, kind, &why);
	if (path == PATH_GENERAL && qp->dci && dci_stream_error(qp->dci, wqe.stream))
		return flush_start(qp, SPILL(&spilled, &wqe));
	if (unlikely(error))
		return requester_fail_start(qp, SPILL(&spilled, &wqe), MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, &why);
	if (path == PATH_GENERAL)
		return start_other(qp, SPILL(&spilled, &wqe), run);
	kind.class = wqe_opcodes[wqe.opcode].class;
	switch (kind.class) {
	case WQE_CLASS_WRITE:
	case WQE_CLASS_SEND:
	case WQE_CLASS_READ:
	case WQE_CLASS_ATOMIC:
		return start_kind(qp, &wqe, packet, run, kind);
	default:
		return start_other(qp, SPILL(&spilled, &wqe), run);
	}
}

static __attribute__((noinline)) enum progress start_next_other(struct hca_qp *qp, struct run *run)
{
	return start_next(qp, wqe_posted(&qp->requester, qp->requester.next), run_slot(run), run, PATH_GENERAL);
}

/* Continues with the FIFO: the rest of a message, or retransmission. */
static enum progress send_next(struct hca_qp *qp, struct packet *packet)
{
	struct requester *requester = &qp->requester;
	struct inflight *entry = inflight_at(requester, requester->send_entry);
	enum progress progress = PROGRESS_PACKET;
	struct refusal why;
	struct wqe wqe;
	int syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;

	if (entry->done || requester->send_offset >= entry->packets) {
		requester->send_entry++;
		requester->send_offset = 0;
		return PROGRESS_MADE;
	}
	if (!wqe_parse(qp, entry->index, entry->blocks, &wqe, &why))
		progress = requester_build_piece(qp, &wqe, entry, packet, &syndrome, &why);
	if (syndrome) {
		if (requester->send_entry != requester->first)
			return PROGRESS_NONE;
		requester_fail_front(qp, (uint8_t)syndrome, &why);
		return requester_after_failure(qp);
	}
	packet->psn = psn_add(entry->psn, requester->send_offset);
	return progress;
}

bool requester_next_other(struct hca_qp *qp, struct run *run)
{
	struct requester *requester = &qp->requester;
	enum progress progress = PROGRESS_NONE;

	if (requester->rnr_wait)
		return false;
	do {
		if (qp->dci && qp->dci->flushing)
			requester_flush_stream(qp);
		switch (requester->state) {
		case REQUESTER_IDLE:
			if (qp->inherited)
				inherited_qp_explain(qp);
			return false;
		case REQUESTER_FLUSH:
			requester_flush(qp);
			return false;
		case REQUESTER_DRAINED:
			if (requester->send_entry == requester->last)
				return false;
			progress = send_next(qp, run_slot(run));
			break;
		case REQUESTER_READY:
			if (requester->send_entry == requester->last && requester_stops_at_signature_error(qp))
				return false;
			progress = requester->send_entry != requester->last ? send_next(qp, run_slot(run))
									    : start_next_other(qp, run);
			break;
		}
	} while (progress == PROGRESS_MADE);
	return progress == PROGRESS_PACKET;
}

enum progress requester_start_rc(struct hca_qp *qp, uint32_t posted, struct packet *packet, struct run *run)
{
	return start_next(qp, posted, packet, run, PATH_RC);
}

/* Records a packet of the entry sent next, perhaps sent before. */
static RARE void record_piece(const struct hca_qp *qp, const struct packet *packet)
{
	struct requester *requester = (struct requester *)&qp->requester;
	/* The analyzer mistakes a local copy for one that was built. */
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
	bool again = psn_distance(psn_add(packet->psn, packet->count), requester->newest) <= 0;

	record_sent(qp, again ? TIMELINE_SEND_AGAIN : TIMELINE_SEND,
		    inflight_at(requester, requester->send_entry)->index, packet);
}

static bool requester_has_more(const struct requester *requester)
{
	return requester->send_entry + 1 != requester->last ||
	       (wqe_posted(requester, requester->next) &&
		class_sends(wqe_opcodes[wqe_opcode_at(requester, requester->next)].class));
}

void requester_announce(const struct hca_qp *qp, struct run *run)
{
	const struct requester *requester = &qp->requester;

	run->streams = requester->last - requester->first > REQUESTER_STREAM && run_slot(run)->place == PLACE_ONLY &&
		       run_slot(run)->count == 1 && !progress_on_thread();
	run->more = run->streams || requester_has_more(requester);
}

bool requester_send_packet(struct hca_qp *qp, struct run *run)
{
	struct packet *packet = run_slot(run);
	/* Read before sending, since a link may change the packet. A disconnect belongs to no entry. */
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	const bool disconnects = packet->message == MESSAGE_DISCONNECT;

	if (packet->link && packet->link->shares && qp->transport->reliable && !host_window_take(qp, packet))
		return false;
	if (timeline_is_on())
		record_piece(qp, packet);
	if (packet->link && link_send_or_wait(qp->hca, run, &qp->requester.waiter, &qp->sender, true) == LINK_BUSY) {
		if (timeline_is_on())
			record_no_room(qp);
		return false;
	}
	if (likely(!disconnects))
		has_left(qp->hca, &qp->requester, packet);
	return true;
}
