/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the requester share: starting and sending (requester.c), responses (requester_response.c), time
 * (requester_timer.c), completing and flushing (requester_complete.c). All of it under the QP's lock.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_H
#define SOFTHCA_TRANSPORT_REQUESTER_H

#include "core/compiler.h"
#include "wire/link.h"
#include "transport/dci.h"
#include "transport/transport.h"
#include "format/wqe.h"

/** The WQE at @position (free running, between requester.first and last) of the in-flight FIFO. */
static inline struct inflight *inflight_at(struct requester *requester, uint32_t position)
{
	return &requester->inflight[position & (requester->block_count - 1)];
}

/** Puts @wqe behind the last one of the in-flight FIFO; what its packets are is the caller's to say. */
SPECIALISED struct inflight *requester_push(struct requester *requester, const struct wqe *wqe)
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

/**
 * The address in @packet from the address vector of @wqe (mlx5-formats 1.6). Returns 0, or a CQE syndrome with @why for a
 * source GID that does not exist.
 */
int requester_address(const struct hca_qp *qp, const struct wqe *wqe, struct packet *packet, struct refusal *why);

/** The next WQE is the next to be sent: of what is in flight nothing is sent again. */
static inline void requester_nothing_to_send(struct requester *requester)
{
	requester->send_entry = requester->last;
	requester->send_offset = 0;
}

/** The link and the number of the QP that a reliable QP sends to; of a DCI those of its present target. */
static inline const struct link *requester_peer(const struct hca_qp *qp, uint32_t *number)
{
	*number = qp->dci ? qp->dci->target.number : qp->attr.dest_qp_num;
	return qp->dci ? qp->dci->target.link : qp->link;
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

/**
 * Something was sent, or could not be for want of room: arms the timer, if it is not. Of a reliable QP, for what is not
 * acknowledged (IBTA 9.7.6.1.3); else, if it waits for room, so that it does not wait for ever.
 */
void requester_watch(struct hca_qp *qp);
/** One retry less; false: there was none left. Losses that what all send at once has made count none (transport/host_window.h). */
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
