/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the requester's files. The lock of the QP is held unless stated otherwise. */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_REQUESTER_H
#define SOFTHCA_TRANSPORT_REQUESTER_REQUESTER_H

#include "core/compiler.h"
#include "format/wqe.h"
#include "transport/qp/schedule.h"
#include "transport/qp/transport.h"
#include "wire/link.h"

/** Handles a response and reads its payload. */
void requester_receive(struct hca_qp *qp, struct packet *packet, struct run *run);

/**
 * Handles a positive acknowledgement of all packets up to @psn, for an RC @qp with nonzero `whole` on a device without
 * filters.
 */
void requester_receive_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run);

/**
 * Flushes posted requests and those in flight with WR_FLUSH_ERR. A thread that delivers one of them does that later
 * (transport/run/send_queue.c).
 */
void requester_flush(struct hca_qp *qp);

/** Drops everything and begins at block 0 (RESET). */
void requester_reset(struct hca_qp *qp);

/** Raises SQ_DRAINED if due. */
void requester_check_drained(struct hca_qp *qp);
/**
 * Moves a QP that stops at signature errors to SQD if its send queue has found one since it was last in RTS. Returns
 * true if so.
 */
bool requester_stops_at_signature_error(struct hca_qp *qp);

/**
 * Handles an expired timer: silence, or the end of an RNR wait. The caller runs the requester next. No lock held;
 * inside an epoch section.
 */
void requester_timer_expired(struct hca_qp *qp);

/**
 * A process of this host has ended: requests in flight to it fail when their retries would be used up, or after
 * LIMIT_PEER_ENDED_MS. No lock held.
 */
void requester_notice_end(struct hca_qp *qp);

/**
 * Returns true if the peer's process was on this host and has ended, even if packets go over a wire. Makes a few system
 * calls if the link is udp.
 */
bool requester_peer_has_ended(const struct hca_qp *qp);

/** Returns the FIFO entry at @position (free running, from requester.first to before last). */
static inline struct inflight *inflight_at(struct requester *requester, uint32_t position)
{
	return &requester->inflight[position & (requester->block_count - 1)];
}

/** Appends @wqe to the FIFO. The caller fills in its packets. */
static inline SPECIALISED struct inflight *requester_push(struct requester *requester, const struct wqe *wqe)
{
	struct inflight *entry = inflight_at(requester, requester->last);

	*entry = (struct inflight){
		.index = wqe->index,
		.stream = wqe->stream,
		.opcode = wqe->opcode,
		.fm_ce_se = wqe->fm_ce_se,
		.blocks = (uint8_t)wqe->blocks,
	};
	requester->last++;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	return entry;
}

/** Completes executed requests at the front, in ring order (IBTA C10-105). */
void requester_complete_front(struct hca_qp *qp);

/**
 * Completes a failed WQE, the oldest in flight, in error, and moves the QP to ERR (reliable) or SQE (IBTA 10.3.1),
 * which flushes the rest. On a DCI with streams only the stream fails, with the requests in flight. Uses index, stream,
 * opcode and fm_ce_se of @entry.
 */
void requester_fail(struct hca_qp *qp, const struct inflight *entry, uint8_t syndrome, const struct refusal *why);

/** As requester_fail(), for the front of the FIFO. */
void requester_fail_front(struct hca_qp *qp, uint8_t syndrome, const struct refusal *why);

/** Completes a flushed request. Uses the same fields of @entry as requester_fail(). */
void requester_flush_one(struct hca_qp *qp, const struct inflight *entry);
/** Flushes the requests in flight on a failed stream. A thread that delivers one of them does that itself. */
void requester_flush_stream(struct hca_qp *qp);

/** Marks everything in flight as sent: nothing is retransmitted. */
static inline void requester_nothing_to_send(struct requester *requester)
{
	requester->send_entry = requester->last;
	requester->send_offset = 0;
}

/**
 * Returns true if the timer keeps running when the peer shows a sign of life, and checks for signs on expiry, for links
 * where every message would otherwise arm and disarm it. It then expires after one to two times its value (IBTA
 * 9.7.6.1.3 allows four times).
 */
static inline bool requester_timer_is_lazy(const struct hca_qp *qp)
{
	uint32_t number;
	const struct link *link = requester_peer(qp, &number);

	return link && !link_is_immediate(qp->hca, link) && !qp->requester.rnr_wait;
}

/* Result of continuing the send queue. */
enum progress {
	PROGRESS_NONE, /* nothing can start now */
	PROGRESS_MADE, /* something was executed; call again */
	PROGRESS_PACKET,
};

/** Returns PROGRESS_MADE if the QP continues because only a stream failed. */
static inline enum progress requester_after_failure(const struct hca_qp *qp)
{
	return qp->requester.state == REQUESTER_READY ? PROGRESS_MADE : PROGRESS_NONE;
}

/**
 * Fails @wqe, which cannot start because of @why, after everything before it. Until then every call parses it again.
 */
RARE enum progress requester_fail_start(struct hca_qp *qp, const struct wqe *wqe, uint8_t syndrome,
					const struct refusal *why);

/** Executes the local operation @wqe. May release the lock and take it again. */
enum progress requester_start_local(struct hca_qp *qp, const struct wqe *wqe);

/** Returns true if @packet, with the whole message of @entry, can be sent now. */
bool requester_fits(const struct hca_qp *qp, const struct inflight *entry, const struct packet *packet);
/**
 * Builds a packet with as much of @entry as can be sent now, from requester.send_offset on, without sequence number.
 * @syndrome: not 0, with @why filled, if @wqe, which is read again, has changed or fails otherwise.
 */
enum progress requester_build_piece(struct hca_qp *qp, const struct wqe *wqe, struct inflight *entry,
				    struct packet *packet, int *syndrome, struct refusal *why);

/** Retransmits from packet @offset of the entry at @position. Arrived data of a READ is not requested again. */
void requester_go_back(struct hca_qp *qp, uint32_t position, uint32_t offset);
/** Reduces the window after a loss. */
void requester_narrow_window(struct hca_qp *qp);
/** Fails the front of the FIFO: retries are used up. */
void requester_give_up(struct hca_qp *qp);
/** Delays the retransmission by the time in the RNR NAK @packet. */
void requester_retry_later(struct hca_qp *qp, const struct packet *packet);
/** Returns the RNR timer value of @code in nanoseconds (IBTA table 45). */
uint64_t rnr_timer_ns(uint8_t code);

/**
 * Arms the timer unless armed: on a reliable QP for unacknowledged packets (IBTA 9.7.6.1.3), on others to limit the
 * wait for room.
 */
void requester_watch(struct hca_qp *qp);
/** Uses up a retry, except after congestion (transport/qp/host_window.h). Returns false if none was left. */
bool requester_may_retry(struct hca_qp *qp);
/** Returns the share of packets no longer in flight to the window of the host. */
void requester_settle(struct hca_qp *qp);

/** Disarms the armed timer. */
void requester_disarm(struct hca_qp *qp);

/** Stops the timer: the QP waits neither for an acknowledgement nor for a receive. */
static inline void requester_stop_timer(struct hca_qp *qp)
{
	qp->requester.rnr_wait = false;
	qp->requester.silent_since_ns = 0;
	if (unlikely(qp->requester.timer_armed))
		requester_disarm(qp);
}

#endif
