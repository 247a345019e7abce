/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the requester share: starting and sending (requester.c), responses (response.c), retries (retry.c), the
 * timer (timer.c), completing and flushing (complete.c). The lock of the QP covers all of it.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_REQUESTER_H
#define SOFTHCA_TRANSPORT_REQUESTER_REQUESTER_H

#include "core/compiler.h"
#include "format/wqe.h"
#include "transport/qp/schedule.h"
#include "transport/qp/transport.h"
#include "wire/link.h"

/** A response arrived, whose payload is read on. The lock of @qp is held. */
void requester_receive(struct hca_qp *qp, struct packet *packet, struct run *run);

/**
 * The same of an acknowledgement of all packets up to and including @psn, which refuses nothing, for a @qp of RC whose `whole` is
 * not 0, and whose device has no filters.
 */
void requester_receive_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run);

/**
 * Flushes what is in flight and posted, each with a WR_FLUSH_ERR completion; while a thread delivers something of it,
 * leaves that to the thread (the state says it, see transport/run/send_queue.c). The lock is held.
 */
void requester_flush(struct hca_qp *qp);

/** Forgets everything in flight and begins at block 0 (RESET). The lock is held. */
void requester_reset(struct hca_qp *qp);

/** Raises SQ_DRAINED if the queue is to be drained and has no WQE under way. The lock is held. */
void requester_check_drained(struct hca_qp *qp);
/**
 * Moves a QP that is to stop at signature errors to SQD if its send queue has found one since it was last in RTS. Returns
 * true if so. The lock is held.
 */
bool requester_stops_at_signature_error(struct hca_qp *qp);

/** The timer has run out: handles silence, or ends the wait for a receiver. No lock held; inside an epoch section. The requester is run next. */
void requester_timer_expired(struct hca_qp *qp);

/** Fails what is in flight to a process of this host that has ended, as if all retries had been made. No lock held. */
void requester_give_up_if_lost(struct hca_qp *qp);

/** The WQE at @position (free running, between requester.first and last) of the in-flight FIFO. */
static inline struct inflight *inflight_at(struct requester *requester, uint32_t position)
{
	return &requester->inflight[position & (requester->block_count - 1)];
}

/** Puts @wqe behind the last one of the in-flight FIFO; what its packets are is the caller's to say. */
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

/** Completes from the front of the FIFO what is done, in the order of the ring (IBTA C10-105). */
void requester_complete_front(struct hca_qp *qp);

/**
 * A failed WQE: its error completion, then the QP goes to ERR (reliable) or SQE (IBTA 10.3.1), which flushes the rest. Of
 * a DCI with streams the stream fails, and what is in flight, which is of that stream. Nothing is in flight before it.
 * Of @entry index, stream, opcode and fm_ce_se count.
 */
void requester_fail(struct hca_qp *qp, const struct inflight *entry, uint8_t syndrome, const struct refusal *why);

/** The same for the front of the FIFO. */
void requester_fail_front(struct hca_qp *qp, uint8_t syndrome, const struct refusal *why);

/** The completion of a request that is flushed, because of its QP or its stream; of @entry the same counts. */
void requester_flush_one(struct hca_qp *qp, const struct inflight *entry);
/** Flushes what is in flight on a stream of a DCI that failed, unless a thread is delivering it, which will. */
void requester_flush_stream(struct hca_qp *qp);

/** The next WQE is the next to be sent: of what is in flight nothing is sent again. */
static inline void requester_nothing_to_send(struct requester *requester)
{
	requester->send_entry = requester->last;
	requester->send_offset = 0;
}

/**
 * True if the acknowledgement timer goes on as it is when the peer shows a sign of life, and looks for such signs when it has
 * run out: on links where every message would else arm and disarm it. So it runs out after one to two times its value
 * (IBTA 9.7.6.1.3 allows four times).
 */
static inline bool requester_timer_is_lazy(const struct hca_qp *qp)
{
	uint32_t number;
	const struct link *link = requester_peer(qp, &number);

	return link && !link_is_immediate(qp->hca, link) && !qp->requester.rnr_wait;
}

/* What became of the attempt to go on. */
enum progress {
	PROGRESS_NONE,   /* nothing can be started now */
	PROGRESS_MADE,   /* something was executed on the spot; look again */
	PROGRESS_PACKET, /* a packet was built */
};

/** A QP goes on after a failure only if it was that of one of its streams. */
static inline enum progress requester_after_failure(const struct hca_qp *qp)
{
	return qp->requester.state == REQUESTER_READY ? PROGRESS_MADE : PROGRESS_NONE;
}

/** @wqe cannot be started, because of @why: fails it when all that came before has completed; until then it is looked at again. */
RARE enum progress requester_fail_start(struct hca_qp *qp, const struct wqe *wqe, uint8_t syndrome,
					const struct refusal *why);

/** Executes @wqe, which is no message: a copy, a look at memory, or a change of keys. The lock may be let go meanwhile. */
enum progress requester_start_local(struct hca_qp *qp, const struct wqe *wqe);

/** True if @packet, all of the message of @entry, can be sent as it is now; else it is sent in pieces. */
bool requester_fits(const struct hca_qp *qp, const struct inflight *entry, const struct packet *packet);
/**
 * What can be sent now of @entry, from requester.send_offset on, but for its sequence number: for the first time, or again.
 * @wqe is read anew; if it has changed since, or fails otherwise, @syndrome is not 0 and @why says so.
 */
enum progress requester_build_piece(struct hca_qp *qp, const struct wqe *wqe, struct inflight *entry,
				    struct packet *packet, int *syndrome, struct refusal *why);

/** Sends from packet @offset of the FIFO's entry at @position on. Of a READ what has come is not asked for again. */
void requester_go_back(struct hca_qp *qp, uint32_t position, uint32_t offset);
/** Packets were lost: less is sent at once, as if the way had become narrower. Each acknowledgement takes some of it back. */
void requester_narrow_window(struct hca_qp *qp);
/** The retries of the front of the FIFO are used up. */
void requester_give_up(struct hca_qp *qp);
/** The peer has no receive: waits as long as the RNR NAK @packet says, and then sends again. */
void requester_retry_later(struct hca_qp *qp, const struct packet *packet);
/** RNR timer values in nanoseconds by code (IBTA table 45). */
uint64_t rnr_timer_ns(uint8_t code);

/**
 * Something was sent, or could not be for want of room: arms the timer, if it is not. Of a reliable QP, for what is not
 * acknowledged (IBTA 9.7.6.1.3); else, if it waits for room, so that it does not wait for ever.
 */
void requester_watch(struct hca_qp *qp);
/** One retry less; false: there was none left. Losses that what all send at once has made count none (transport/qp/host_window.h). */
bool requester_may_retry(struct hca_qp *qp);
/** Gives back what it has of the window of the peer's host for packets that are not under way any more. */
void requester_settle(struct hca_qp *qp);

/** Disarms the timer, which is armed. */
void requester_disarm(struct hca_qp *qp);

/** Neither an acknowledgement nor a receiver is waited for any more. */
static inline void requester_stop_timer(struct hca_qp *qp)
{
	qp->requester.rnr_wait = false;
	qp->requester.silent_since_ns = 0;
	if (unlikely(qp->requester.timer_armed))
		requester_disarm(qp);
}

#endif
