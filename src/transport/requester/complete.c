/* SPDX-License-Identifier: BSD-2-Clause */
/* Completes requests: in ring order, in error, and by flushing. */
#include "transport/qp/dci.h"
#include "transport/qp/record.h"
#include "transport/requester/acknowledge.h"
#include "transport/requester/send.h"
#include "transport/requester/wqe_parse.h"
#include "wire/link.h"

void requester_disarm(struct hca_qp *qp)
{
	timer_disarm(&qp->hca->timers, &qp->requester.timer);
	qp->requester.timer_armed = false;
}

void requester_settle(struct hca_qp *qp)
{
	const struct requester *requester = &qp->requester;
	uint32_t next = requester->psn;
	int32_t packets;

	if (!requester->share.packets)
		return;
	if (requester->send_entry != requester->last)
		next = psn_add(inflight_at((struct requester *)requester, requester->send_entry)->psn,
			       requester->send_offset);
	packets = requester->first == requester->last ? 0 : psn_distance(next, psn_add(requester->acknowledged, 1));
	host_window_settle(qp, packets > 0 ? (uint32_t)packets : 0);
}

void requester_complete_front(struct hca_qp *qp)
{
	requester_complete_first(qp, false);
}

static uint64_t requester_wr_id(const struct hca_qp *qp, uint16_t index)
{
	return qp->wr_id_of ? qp->wr_id_of(qp->cookie, index) : 0;
}

static const char *request_of(const struct hca_qp *qp, uint16_t index, uint8_t opcode)
{
	return opcode == MLX5_OPCODE_UMR && qp->umr_name_of ? qp->umr_name_of(qp->cookie, index) : NULL;
}

static uint64_t explain_wqe(struct hca_qp *qp, uint16_t index, uint8_t opcode, uint8_t syndrome,
			    const struct refusal *why)
{
	struct explain_subject subject = {
		.qpn = qp->number,
		.wr_id = requester_wr_id(qp, index),
		.opcode = opcode,
		.request = request_of(qp, index, opcode),
		.syndrome = syndrome,
		.qp_state = (uint8_t)qp->state,
		.expected = why->rule == RULE_FLUSHED && qp->ended,
	};

	return explain_make(qp->hca, &subject, why->rule, why->args, EXPLAIN_ARGS);
}

void requester_fail(struct hca_qp *qp, const struct inflight *entry, uint8_t syndrome, const struct refusal *why)
{
	uint64_t record = explain_wqe(qp, entry->index, entry->opcode, syndrome, why);

	requester_complete_send(qp, MLX5_CQE_REQ_ERR, entry->opcode, entry->fm_ce_se, entry->index, 0, syndrome,
				why->rule);
	/* A full CQ may have moved the QP to ERR. */
	if (qp->dci && qp->state != IBV_QPS_ERR && dci_stream_failed(qp->dci, entry->stream, record))
		requester_flush_stream(qp);
	else if (qp->transport->reliable)
		qp_enter_error(qp, record);
	else
		qp_enter_send_error(qp, record);
}

void requester_fail_front(struct hca_qp *qp, uint8_t syndrome, const struct refusal *why)
{
	struct requester *requester = &qp->requester;
	struct inflight entry = *inflight_at(requester, requester->first);

	requester->first++;
	requester_fail(qp, &entry, syndrome, why);
}

void requester_flush_one(struct hca_qp *qp, const struct inflight *entry)
{
	struct refusal why = {RULE_FLUSHED, {0}};

	/* mlx5-formats 6, point 46: mode 1 asks for no completion of flushed requests. */
	if (WQE_COMPLETION(entry->fm_ce_se) == WQE_CQE_ON_FIRST_ERROR)
		return;
	if (qp->requester.state != REQUESTER_FLUSH)
		why = (struct refusal){RULE_DCI_STREAM_FLUSHED,
				       {entry->stream, dci_stream_error(qp->dci, entry->stream)}};
	else
		why.args[0] = qp->error_record;
	explain_wqe(qp, entry->index, entry->opcode, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, &why);
	requester_complete_send(qp, MLX5_CQE_REQ_ERR, entry->opcode, entry->fm_ce_se, entry->index, 0,
				MLX5_CQE_SYNDROME_WR_FLUSH_ERR, why.rule);
}

void requester_flush_stream(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	requester_stop_timer(qp);
	dci_break(qp->dci);
	qp->dci->flushing = requester->delivering;
	if (requester->delivering)
		return;
	while (requester->first != requester->last) {
		struct inflight entry = *inflight_at(requester, requester->first++);

		/* A local operation of another stream only waited for its turn. */
		if (entry.done && !dci_stream_error(qp->dci, entry.stream))
			requester_complete_done(qp, &entry);
		else
			requester_flush_one(qp, &entry);
	}
	requester_nothing_to_send(requester);
	requester_settle(qp);
	requester->responses_due = 0;
	requester->retries_left = qp->attr.retry_cnt;
	requester->rnr_retries_left = qp->attr.rnr_retry;
}

void requester_flush(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	/* A record can claim 65535 blocks of a ring of four: each is flushed once. */
	uint32_t posted, left = requester->block_count;

	requester_stop_timer(qp);
	/*
	 * A completion returns the memory to the program (ibv_poll_cq(3)), so the thread that uses it flushes
	 * afterwards.
	 */
	if (requester->delivering)
		return;
	while (requester->first != requester->last) {
		struct inflight entry = *inflight_at(requester, requester->first++);

		requester_flush_one(qp, &entry);
	}
	requester_nothing_to_send(requester);
	requester_settle(qp);
	requester->responses_due = 0;
	if (qp->dci)
		qp->dci->flushing = false;
	/* If the CQ fills up, this function is called again (qp_complete()), so posted blocks are counted anew. */
	while (left && (posted = wqe_posted(requester, requester->next))) {
		struct inflight entry = {.index = requester->next};
		uint32_t blocks = wqe_skim(requester, entry.index, &entry.opcode, &entry.fm_ce_se);

		if (blocks > posted)
			blocks = posted;
		if (blocks > left)
			blocks = left;
		left -= blocks;
		requester->next = (uint16_t)(entry.index + blocks);
		requester_flush_one(qp, &entry);
	}
}

void requester_reset(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	/* Packets that wait must not arrive at the next connection of this number. */
	link_let_go();
	requester_stop_timer(qp);
	requester_enter(qp, REQUESTER_IDLE);
	requester->next = 0;
	requester->psn = requester->newest = 0;
	requester->requested_again = false;
	requester->peer_signs = requester->peer_signs_seen = 0;
	requester->acknowledged = PSN_MASK;
	requester->first = requester->last = 0;
	requester_nothing_to_send(requester);
	requester_settle(qp);
	requester->responses_due = 0;
	if (qp->dci)
		dci_reset(qp->dci);
}

enum progress requester_fail_start(struct hca_qp *qp, const struct wqe *wqe, uint8_t syndrome,
				   const struct refusal *why)
{
	struct requester *requester = &qp->requester;

	/* Earlier requests complete first; this WQE is parsed again when the FIFO is empty. */
	if (requester->first != requester->last)
		return PROGRESS_NONE;
	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester_fail(qp,
		       &(struct inflight){.index = wqe->index,
					  .stream = wqe->stream,
					  .opcode = wqe->opcode,
					  .fm_ce_se = wqe->fm_ce_se},
		       syndrome, why);
	return requester_after_failure(qp);
}

/* UC and UD requests complete once their last packet has left (IBTA C9-161). */
void requester_complete_unreliable(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;

	for (uint32_t i = requester->first; i != requester->send_entry; i++)
		inflight_at(requester, i)->done = true;
	requester_complete_front(qp);
}
