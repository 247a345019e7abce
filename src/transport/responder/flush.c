/* SPDX-License-Identifier: BSD-2-Clause */
/* Flushes the receive queue, and resets the responder. */
#include <string.h>

#include "transport/responder/answer.h"
#include "transport/responder/dct.h"
#include "transport/responder/responder.h"

static void flush_receive(struct hca_qp *qp, struct responder *responder)
{
	struct request request = {.qp = qp, .responder = responder};
	struct explain_subject subject = {
		.qpn = qp->number,
		.receive = true,
		.syndrome = MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
		.qp_state = (uint8_t)qp->state,
		.expected = qp->ended,
	};
	struct completion completion = {
		.opcode = MLX5_CQE_RESP_ERR,
		.syndrome = MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
		.vendor_syndrome = RULE_FLUSHED_RECEIVE,
	};

	EXPLAIN(qp->hca, &subject, RULE_FLUSHED_RECEIVE, qp->error_record);
	responder_complete_receive(&request, &completion);
}

void responder_flush(struct hca_qp *qp)
{
	struct responder *responder = &qp->responder;
	/* A record can claim 65535 entries of a ring of eight: each is flushed once (rq_posted). */
	uint32_t left = qp->srq ? 0 : rq_posted(&qp->rq);

	while (responder->has_receive || (left && left-- && rq_take(&qp->rq, &responder->receive)))
		flush_receive(qp, responder);
	for (struct dct_initiator *initiator = qp->dct ? qp->dct->all : NULL; initiator; initiator = initiator->next)
		if (initiator->responder.has_receive)
			flush_receive(qp, &initiator->responder);
}

void responder_reset(struct hca_qp *qp)
{
	struct responder *responder = &qp->responder;

	responder->expected_psn = 0;
	responder->msn = 0;
	responder->in_message = false;
	responder->has_receive = false;
	responder->srq = NULL;
	responder->nak_sent = responder->early = responder->psn_explained = false;
	answer_forget(qp, responder);
	for (struct dct_initiator *each = qp->dct ? qp->dct->all : NULL; each; each = each->next)
		answer_forget(qp, &each->responder);
	responder->established = false;
	if (responder->resources)
		memset(responder->resource, 0, responder->resources * sizeof(*responder->resource));
	qp->rq.consumed = 0;
}
