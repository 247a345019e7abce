/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs in the model: queues, states, completions; execute.c executes single requests. See queues.h. */
#include "queues.h"

#include <string.h>

#include "execute.h"

static void expect_send(struct model_qp *qp, const struct expectation *expectation)
{
	qp->send_completion[qp->send_completions.last++ % OUTSTANDING] = *expectation;
}

void expect_receive(struct model_qp *qp, const struct expectation *expectation)
{
	qp->receive_completion[qp->receive_completions.last++ % (2 * OUTSTANDING)] = *expectation;
}

static void flush_sends(struct model_qp *qp)
{
	while (queued(&qp->sends)) {
		const struct request *request = &qp->send[qp->sends.first++ % OUTSTANDING];

		expect_send(qp, &(struct expectation){.id = request->id, .statuses = 1u << IBV_WC_WR_FLUSH_ERR});
	}
	qp->stalled = false;
}

static void flush_receives(struct model_qp *qp)
{
	while (queued(&qp->receives)) {
		const struct receive *receive = &qp->receive[qp->receives.first++ % OUTSTANDING];

		expect_receive(qp, &(struct expectation){.id = receive->id, .statuses = 1u << IBV_WC_WR_FLUSH_ERR});
	}
}

void model_fail(struct model *model, int index)
{
	struct model_qp *qp = &model->qp[index];

	qp->state = IBV_QPS_ERR;
	flush_sends(qp);
	flush_receives(qp);
}

static unsigned int completion_opcode(unsigned int opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case OP_CONFIGURE:
		return IBV_WC_DRIVER1;
	default:
		return IBV_WC_SEND;
	}
}

/* mlx5-formats 3.8: only completions with data have a length. */
static void complete_send(struct model_qp *qp, const struct request *request)
{
	bool atomic = request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct expectation expectation = {
		.id = request->id,
		.statuses = 1u << IBV_WC_SUCCESS,
		.success = true,
		.opcode = completion_opcode(request->opcode),
		.has_length = atomic || request->opcode == IBV_WR_RDMA_READ,
		.length = atomic ? 8 : (uint32_t)spans_length(request->span, request->count),
	};

	if (request->signalled || qp->sig_all)
		expect_send(qp, &expectation);
}

/* ibv_modify_qp(3): an error of the send queue leads to ERR where the connection is reliable, to SQE elsewhere. */
static void fail_send(struct model *model, int index, const struct request *request, uint32_t statuses)
{
	struct model_qp *qp = &model->qp[index];

	expect_send(qp, &(struct expectation){.id = request->id, .statuses = statuses});
	if (qp->type == IBV_QPT_RC) {
		model_fail(model, index);
	} else {
		qp->state = IBV_QPS_SQE;
		flush_sends(qp);
	}
}

static void carry_out(struct model *model, int index, const struct request *request)
{
	struct model_qp *qp = &model->qp[index];
	struct outcome outcome = {0};

	execute(model, index, request, &outcome);
	if (outcome.waits) {
		qp->stalled = true;
		qp->sends.first--;
		return;
	}
	if (outcome.peer_fails)
		qp->refused = request->id;
	/* A QP that is its own peer may be in ERR, and flushed, before the cause arrives. */
	if (outcome.peer_fails && qp->peer == index)
		outcome.statuses |= 1u << IBV_WC_WR_FLUSH_ERR;
	if (outcome.statuses)
		fail_send(model, index, request, outcome.statuses);
	else
		complete_send(qp, request);
	if (outcome.peer_fails)
		model_fail(model, qp->peer);
}

static void run(struct model *model, int index)
{
	struct model_qp *qp = &model->qp[index];

	qp->stalled = false;
	while (queued(&qp->sends) && !qp->stalled) {
		if (qp->state == IBV_QPS_RTS)
			carry_out(model, index, &qp->send[qp->sends.first++ % OUTSTANDING]);
		else
			flush_sends(qp);
	}
}

void model_post_send(struct model *model, int index, const struct request *request)
{
	struct model_qp *qp = &model->qp[index];

	qp->send[qp->sends.last++ % OUTSTANDING] = *request;
	if (!qp->stalled)
		run(model, index);
}

void model_post_receive(struct model *model, int index, const struct receive *receive)
{
	struct model_qp *qp = &model->qp[index];

	qp->receive[qp->receives.last++ % OUTSTANDING] = *receive;
	if (qp->state == IBV_QPS_ERR)
		flush_receives(qp);
	else if (qp->type != IBV_QPT_UD && model->qp[qp->peer].stalled)
		run(model, qp->peer);
}

void model_answer_lost(struct model *model, int index, uint64_t id)
{
	struct model_qp *qp = &model->qp[index];
	uint64_t last = id;

	if (!model->loses || id < qp->first_posted || id > qp->refused)
		return;
	/* All requests posted after it: the last of them was to be flushed, or is the refused one itself. */
	if (queued(&qp->send_completions))
		last = qp->send_completion[(qp->send_completions.last - 1) % OUTSTANDING].id;
	qp->send_completions.first = qp->send_completions.last;
	expect_send(qp, &(struct expectation){.id = id, .statuses = 1u << IBV_WC_RETRY_EXC_ERR});
	for (uint64_t i = id + 1; i <= last; i++)
		expect_send(qp, &(struct expectation){.id = i, .statuses = 1u << IBV_WC_WR_FLUSH_ERR});
	/* It was to succeed, although it ended its responder, and no request followed it. */
	if (qp->state != IBV_QPS_ERR)
		model_fail(model, index);
}

static void forget(struct queue *queue)
{
	queue->first = queue->last;
}

void model_reset(struct model *model, int index)
{
	struct model_qp *qp = &model->qp[index];

	qp->state = IBV_QPS_RTS;
	qp->stalled = false;
	forget(&qp->sends);
	forget(&qp->receives);
	forget(&qp->send_completions);
	forget(&qp->receive_completions);
}

void model_resume(struct model *model, int index)
{
	model->qp[index].state = IBV_QPS_RTS;
}
