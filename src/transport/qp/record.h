/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What requester and responder put into the timeline of the process (observe/timeline.h). Whoever calls one of these has asked
 * timeline_is_on() before. The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_QP_RECORD_H
#define SOFTHCA_TRANSPORT_QP_RECORD_H

#include "observe/timeline.h"
#include "transport/qp/qp.h"

/** @packet, of the WQE at @index, is about to leave. @kind: CALL, SEND or SEND_AGAIN. */
void record_sent(const struct hca_qp *qp, enum timeline_kind kind, uint16_t index, const struct packet *packet);
/** It did not: there is no room. */
RARE void record_no_room(const struct hca_qp *qp);
/** Records that the WQE at @index, with @opcode, which sends no message, was executed. Ends the call's time (timeline_end_call()). */
void record_local(const struct hca_qp *qp, uint16_t index, uint8_t opcode);
/** @packet has arrived for @qp; @count: as packet.count, if that is known. */
void record_arrived(const struct hca_qp *qp, const struct packet *packet, uint32_t count);
/** The same of an acknowledgement, until timeline_end_call(): what it completes, it completes at once. */
void record_acknowledged(const struct hca_qp *qp, const struct packet *packet);
/** @packet, an answer of @qp, is about to leave. */
void record_answer(const struct hca_qp *qp, const struct packet *packet);
/**
 * The request @packet did not go straight through the responder: from its state @from it went to @to (enum responder_state of
 * transport/responder/responder.h), for @rule if it is refused. @expected: PSN that the responder waits for.
 */
RARE void record_stopped(const struct hca_qp *qp, const struct packet *packet, uint8_t from, uint8_t to,
			 uint32_t expected, uint32_t rule);
/** Nothing was heard for too long. */
RARE void record_timeout(const struct hca_qp *qp, uint32_t psn);
/** The requester is in another state. */
RARE void record_state(const struct hca_qp *qp);
/** The QP has an address, and perhaps a peer. */
RARE void record_qp(struct hca_qp *qp);

/** Changes the state of the requester. */
static inline void requester_enter(struct hca_qp *qp, enum requester_state state)
{
	qp->requester.state = state;
	if (timeline_is_on())
		record_state(qp);
}

#endif
