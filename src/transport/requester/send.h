/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds and sends the next packet of a send queue. Compiled into run/send_queue.c. The lock of the QP is held. */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_SEND_H
#define SOFTHCA_TRANSPORT_REQUESTER_SEND_H

#include "core/tunables.h"
#include "transport/qp/path.h"
#include "transport/requester/requester.h"
#include "transport/requester/wqe_parse.h"

/** Builds the next packet on the general path, in run_slot(@run). Returns false if there is none. */
bool requester_next_other(struct hca_qp *qp, struct run *run);
/** Starts the next of @posted blocks on the RC path, in @packet. */
enum progress requester_start_rc(struct hca_qp *qp, uint32_t posted, struct packet *packet, struct run *run);
/** Sends the built packet. Returns false if the link has no room; link_resume() then schedules the QP. */
bool requester_send_packet(struct hca_qp *qp, struct run *run);
/** Sets @run->more and @run->streams for the packet just built, which has not been sent yet. */
void requester_announce(const struct hca_qp *qp, struct run *run);
/** Completes UC and UD requests that have left. */
void requester_complete_unreliable(struct hca_qp *qp);

/**
 * Returns the path of requests that the fast path does not take, while the lock is held. A filter installed meanwhile
 * takes effect with the next doorbell.
 */
static inline enum path requester_path(const struct hca_qp *qp)
{
	if (qp->hca->filters || qp->stop_at_signature_error)
		return PATH_GENERAL;
	return qp->in_process || qp->whole ? PATH_RC : PATH_GENERAL;
}

/** Returns PROGRESS_PACKET if the next packet was built. Messages sent whole need none. */
static inline SPECIALISED enum progress requester_next_packet(struct hca_qp *qp, struct run *run, enum path path)
{
	struct requester *requester = &qp->requester;
	struct packet *packet = &run->packet[0];
	enum progress progress;
	uint32_t posted;

	if (unlikely(run->first != run->last))
		path = PATH_GENERAL;
	else
		run->first = run->last = 0;
	/* No destination until it is built. */
	run_slot(run)->link = NULL;
	for (unsigned int i = 0; i < TUNABLE_REQUESTER_ENDED_AT_ONCE; i++) {
		if (unlikely(path == PATH_GENERAL || requester->state != REQUESTER_READY || requester->rnr_wait ||
			     requester->send_entry != requester->last))
			return requester_next_other(qp, run) ? PROGRESS_PACKET : PROGRESS_NONE;
		posted = wqe_posted(requester, requester->next);
		if (!posted)
			return PROGRESS_NONE;
		progress = requester_start_rc(qp, posted, packet, run);
		if (progress != PROGRESS_MADE)
			return progress;
	}
	return PROGRESS_MADE;
}

#endif
