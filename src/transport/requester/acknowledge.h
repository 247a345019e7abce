/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completes acknowledged requests. Compiled for any link, and for those that send messages whole (link.whole). The lock
 * of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_ACKNOWLEDGE_H
#define SOFTHCA_TRANSPORT_REQUESTER_ACKNOWLEDGE_H

#include "core/compiler.h"
#include "transport/requester/requester.h"
#include "transport/requester/wqe_parse.h"

/** Widens the window, and skips acknowledged packets of a retransmission. */
void requester_window_moved(struct hca_qp *qp);

static inline SPECIALISED struct completion requester_completion(const struct hca_qp *qp, uint8_t cqe_opcode,
								 uint8_t send_opcode, uint8_t fm_ce_se, uint16_t index,
								 uint32_t bytes, uint8_t syndrome,
								 enum explain_rule rule)
{
	return (struct completion){
		.opcode = cqe_opcode,
		.send_opcode = send_opcode,
		.syndrome = syndrome,
		.vendor_syndrome = (uint8_t)rule,
		.wqe_counter = index,
		.user_index = qp->user_index,
		.qpn = qp->number,
		.byte_count = bytes,
		.event = WQE_COMPLETION(fm_ce_se) == WQE_CQE_AND_EVENT,
	};
}

static inline SPECIALISED void requester_complete_send(struct hca_qp *qp, uint8_t cqe_opcode, uint8_t send_opcode,
						       uint8_t fm_ce_se, uint16_t index, uint32_t bytes,
						       uint8_t syndrome, enum explain_rule rule)
{
	qp_complete(qp, qp->send_cq,
		    requester_completion(qp, cqe_opcode, send_opcode, fm_ce_se, index, bytes, syndrome, rule));
}

static inline SPECIALISED void requester_complete_done(struct hca_qp *qp, const struct inflight *entry)
{
	if (WQE_COMPLETION(entry->fm_ce_se) >= WQE_CQE_ALWAYS)
		requester_complete_send(qp, MLX5_CQE_REQ, entry->opcode, entry->fm_ce_se, entry->index, entry->bytes, 0,
					RULE_NONE);
}

/** As requester_timer_is_lazy(). @whole: qp->whole is not 0, and no filter exists. */
static inline SPECIALISED bool requester_keeps_timer(const struct hca_qp *qp, const bool whole)
{
	return whole ? !qp->requester.rnr_wait : requester_timer_is_lazy(qp);
}

/** As requester_complete_front(); @whole as in requester_keeps_timer(). */
static inline SPECIALISED void requester_complete_first(struct hca_qp *qp, const bool whole)
{
	struct requester *requester = &qp->requester;
	struct hca_cq *cq = qp->send_cq;
	bool locked = false;

	while (requester->first != requester->last) {
		struct inflight *entry = inflight_at(requester, requester->first);

		if (!entry->done)
			break;
		if (requester->send_entry == requester->first) {
			requester->send_entry++;
			requester->send_offset = 0;
		}
		requester->first++;
		if (WQE_COMPLETION(entry->fm_ce_se) < WQE_CQE_ALWAYS)
			continue;
		/* One acknowledgement may complete many requests. */
		if (!locked)
			queue_lock(&cq->lock);
		locked = likely(
			cq_write_locked(cq, requester_completion(qp, MLX5_CQE_REQ, entry->opcode, entry->fm_ce_se,
								 entry->index, entry->bytes, 0, RULE_NONE)));
		if (unlikely(!locked)) {
			queue_unlock(&cq->lock);
			qp_lost_completion(qp, cq);
		}
	}
	if (locked)
		queue_unlock(&cq->lock);
	if (requester->first == requester->last && !requester_keeps_timer(qp, whole))
		requester_stop_timer(qp);
	if (unlikely(requester->state == REQUESTER_DRAINED))
		requester_check_drained(qp);
}

/** Schedules the requester if it can send more after an answer. */
static inline void requester_go_on(struct hca_qp *qp, struct run *run)
{
	const struct requester *requester = &qp->requester;
	bool nothing_to_send;

	/* Its thread checks again. */
	if (requester->running)
		return;
	/* Later requests have a doorbell of their own. */
	nothing_to_send = requester->state == REQUESTER_READY && requester->send_entry == requester->last &&
			  !wqe_posted(requester, requester->next);
	if (nothing_to_send && (requester->first == requester->last || requester->timer_armed))
		return;
	/* A QP waiting for room of a host is scheduled when there is some. */
	if (requester->share.waited && link_waits(&requester->waiter) && requester->timer_armed && !qp->dci)
		return;
	run_schedule_requester(run, qp);
}

/** Resets retries and timer after progress. */
static inline SPECIALISED void requester_progressed(struct hca_qp *qp, const bool whole)
{
	qp->requester.retries_left = qp->attr.retry_cnt;
	qp->requester.rnr_retries_left = qp->attr.rnr_retry;
	qp->requester.peer_signs++;
	qp->requester.requested_again = false;
	host_window_progressed(&qp->requester.share);
	/* The timer is for the oldest packet, so it restarts. */
	if (!requester_keeps_timer(qp, whole))
		requester_stop_timer(qp);
}

/** Handles the arrival of all packets up to @psn. */
static inline SPECIALISED void requester_acknowledge(struct hca_qp *qp, const bool whole, uint32_t psn, struct run *run)
{
	struct requester *requester = &qp->requester;
	uint32_t position, before = requester->first;
	bool newer;

	for (position = requester->first; position != requester->last; position++) {
		struct inflight *entry = inflight_at(requester, position);

		if (!entry->packets)
			continue;
		if (psn_distance(psn_add(entry->psn, entry->packets - 1), psn) > 0)
			break;
		if (!entry->responds)
			entry->done = true;
		else if (!entry->done)
			break;
	}
	requester_complete_first(qp, whole);
	/* Part of a message is progress too: long ones would otherwise run out of retries (IBTA 9.7.6.1.3). */
	newer = psn_distance(psn, requester->acknowledged) > 0;
	if (newer) {
		requester->acknowledged = psn;
		/* Links of whole messages have no window. */
		if (!whole || unlikely(requester->send_entry != requester->last))
			requester_window_moved(qp);
	}
	if (requester->first == before && !newer)
		return;
	requester_progressed(qp, whole);
	requester_go_on(qp, run);
}

#endif
