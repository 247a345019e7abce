/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of requester and responder in the timeline (observe/timeline.h). The caller has checked timeline_is_on(). The
 * lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_QP_RECORD_H
#define SOFTHCA_TRANSPORT_QP_RECORD_H

#include "observe/timeline.h"
#include "transport/qp/qp.h"

/** Records @packet of the WQE at @index before it leaves. @kind: CALL, SEND or SEND_AGAIN. */
void record_sent(const struct hca_qp *qp, enum timeline_kind kind, uint16_t index, const struct packet *packet);
/** Records that a packet waits for room. */
RARE void record_no_room(const struct hca_qp *qp);
/** Records that the WQE at @index, without a message, was executed. Ends the call's time (timeline_end_call()). */
void record_local(const struct hca_qp *qp, uint16_t index, uint8_t opcode);
/** @count: as packet.count, if known. */
void record_arrived(const struct hca_qp *qp, const struct packet *packet, uint32_t count);
/** As record_arrived(). The completions of the acknowledgement follow at once, until timeline_end_call(). */
void record_acknowledged(const struct hca_qp *qp, const struct packet *packet);
/** Records @packet, an answer, before it leaves. */
void record_answer(const struct hca_qp *qp, const struct packet *packet);
/**
 * Records that the responder left its usual path at the request @packet: from state @from to @to (enum
 * responder_state), refused by @rule unless RULE_NONE. @expected: expected PSN.
 */
RARE void record_stopped(const struct hca_qp *qp, const struct packet *packet, uint8_t from, uint8_t to,
			 uint32_t expected, uint32_t rule);
/** Records a timeout at @psn. */
RARE void record_timeout(const struct hca_qp *qp, uint32_t psn);
/** Records the requester's state. */
RARE void record_state(const struct hca_qp *qp);
RARE void record_qp(struct hca_qp *qp);

static inline void requester_enter(struct hca_qp *qp, enum requester_state state)
{
	qp->requester.state = state;
	if (timeline_is_on())
		record_state(qp);
}

#endif
