/* SPDX-License-Identifier: BSD-2-Clause */
/* Refuses requests without a valid source or target. */
#include "transport/responder/target.h"

#include "observe/counters.h"
#include "queue/xrc.h"
#include "transport/qp/drop.h"
#include "transport/responder/atomic.h"

enum responder_state responder_refuse_key(struct request *request)
{
	return responder_refuse_with(request, NAK_REMOTE_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR,
				     QP_EVENT_ACCESS_ERROR);
}

/*
 * A message longer than its receive ends a reliable connection (IBTA 9.9.3). An unreliable one is dropped, and the
 * receive is kept (class D); that of an SRQ, which other QPs may wait for, ends in error (class E). The queue pair
 * continues: otherwise any datagram could stop it.
 */
enum responder_state responder_refuse_long(struct request *request, uint64_t header)
{
	struct hca_qp *qp = request->qp;
	struct responder *responder = request->responder;
	const struct packet *packet = request->packet;
	struct explain_subject subject = {.qpn = qp->number, .receive = true, .qp_state = (uint8_t)qp->state};
	struct completion completion = {
		.opcode = MLX5_CQE_RESP_ERR,
		.syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
		.vendor_syndrome = RULE_RECEIVE_TOO_SHORT,
	};
	enum responder_state next = responder_refusal(request, NAK_INVALID_REQUEST, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
						      QP_EVENT_COUNT, RULE_RECEIVE_TOO_SHORT,
						      FIGURES(responder->offset + header + packet->payload.length,
							      responder->receive.bytes, header));

	if (qp->transport->reliable)
		return next;
	counter_add(qp->hca, COUNTER_DROPPED_UNRELIABLE, 1);
	responder->in_message = false;
	responder->expected_psn = psn_add(packet->psn, packet->count);
	if (!responder->srq) {
		packet_explain_drop(qp->hca, packet, &subject, request->why.rule, request->why.args, EXPLAIN_ARGS);
		return RESPONDER_DONE;
	}
	subject.syndrome = completion.syndrome;
	explain_make(qp->hca, &subject, request->why.rule, request->why.args, EXPLAIN_ARGS);
	responder_complete_receive(request, &completion);
	return RESPONDER_DONE;
}
