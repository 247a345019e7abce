/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of requester and responder in the timeline of the process (observe/timeline.h). The caller has checked
 * timeline_is_on(). The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_QP_RECORD_H
#define SOFTHCA_TRANSPORT_QP_RECORD_H

#include "observe/timeline.h"
#include "transport/qp/qp.h"

/** Records that @packet, of the WQE at @index, is about to leave. @kind: CALL, SEND or SEND_AGAIN. */
void record_sent(const struct hca_qp *qp, enum timeline_kind kind, uint16_t index, const struct packet *packet);
/** Records that a packet had to wait because the link had no room. */
RARE void record_no_room(const struct hca_qp *qp);
/** Records that the WQE at @index, with @opcode, was executed; it sends no message. Ends the call's time (timeline_end_call()). */
void record_local(const struct hca_qp *qp, uint16_t index, uint8_t opcode);
/** Records that @packet has arrived for @qp. @count: as packet.count, if that is known. */
void record_arrived(const struct hca_qp *qp, const struct packet *packet, uint32_t count);
/** As record_arrived(), for an acknowledgement. Its completions follow at once, until timeline_end_call(). */
void record_acknowledged(const struct hca_qp *qp, const struct packet *packet);
/** Records that @packet, an answer of @qp, is about to leave. */
void record_answer(const struct hca_qp *qp, const struct packet *packet);
/**
 * Records that the responder left its usual path while handling the request @packet: from state @from to @to (enum
 * responder_state of transport/responder/responder.h), by @rule if the request is refused. @expected: PSN that the
 * responder expects.
 */
RARE void record_stopped(const struct hca_qp *qp, const struct packet *packet, uint8_t from, uint8_t to,
			 uint32_t expected, uint32_t rule);
/** Records a timeout at @psn. */
RARE void record_timeout(const struct hca_qp *qp, uint32_t psn);
/** Records that the state of the requester has changed. */
RARE void record_state(const struct hca_qp *qp);
/** Records the address and the peer, if any, of the QP. */
RARE void record_qp(struct hca_qp *qp);

/** Changes the state of the requester. */
static inline void requester_enter(struct hca_qp *qp, enum requester_state state)
{
	qp->requester.state = state;
	if (timeline_is_on())
		record_state(qp);
}

#endif
