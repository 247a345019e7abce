/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys QPs. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "format/qp_types.h"
#include "hca/grants.h"
#include "observe/counters.h"
#include "queue/cq.h"
#include "transport/control/qp.h"
#include "transport/control/xrc_qps.h"
#include "transport/qp/dci.h"
#include "transport/qp/early.h"
#include "transport/qp/qp.h"
#include "transport/qp/transport.h"
#include "transport/requester/requester.h"
#include "transport/responder/answer.h"
#include "transport/responder/dct.h"
#include "transport/responder/responder.h"
#include "transport/run/run.h"
#include "wire/link.h"

static const int event_types[QP_EVENT_COUNT] = {
	[QP_EVENT_FATAL] = IBV_EVENT_QP_FATAL,
	[QP_EVENT_REQUEST_ERROR] = IBV_EVENT_QP_REQ_ERR,
	[QP_EVENT_ACCESS_ERROR] = IBV_EVENT_QP_ACCESS_ERR,
	[QP_EVENT_COMM_EST] = IBV_EVENT_COMM_EST,
	[QP_EVENT_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
	[QP_EVENT_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
};

void qp_return_receive(struct hca_qp *qp)
{
	if (qp->dct || (qp->responder.srq && qp->responder.has_receive))
		responder_flush(qp);
}

const struct qp_halves transport_halves = {.flush_requester = requester_flush, .flush_responder = responder_flush};

static void hold_references(struct hca_qp *qp)
{
	if (qp->pd)
		reference_get(&qp->pd->references);
	if (qp->send_cq)
		reference_get(&qp->send_cq->references);
	if (qp->recv_cq)
		reference_get(&qp->recv_cq->references);
	if (qp->srq)
		reference_get(&qp->srq->references);
}

static void drop_references(struct hca_qp *qp)
{
	if (qp->pd)
		reference_put(&qp->pd->references);
	if (qp->send_cq)
		reference_put(&qp->send_cq->references);
	if (qp->recv_cq)
		reference_put(&qp->recv_cq->references);
	if (qp->srq)
		reference_put(&qp->srq->references);
}

static void qp_free(struct hca_qp *qp)
{
	queue_lock_destroy(&qp->lock);
	free(qp->requester.inflight);
	block_progress_release(&qp->requester.progress);
	block_progress_release(&qp->requester.copied);
	block_progress_release(&qp->responder.progress);
	free(qp->responder.answers);
	free(qp->responder.resource);
	free(qp->watch);
	free(qp->dci);
	dct_free(qp->dct);
	qp_free_rings(qp);
	free(qp);
}

void qp_opener_init(struct qp_opener *opener, struct hca_context *context, void *object)
{
	opener->context = context;
	for (int i = 0; i < QP_EVENT_COUNT; i++) {
		opener->event[i].type = event_types[i];
		opener->event[i].object = object;
	}
}

void qp_opener_purge(struct qp_opener *opener)
{
	for (int i = 0; i < QP_EVENT_COUNT; i++)
		event_source_purge(opener->context->async, &opener->event[i]);
}

static int alloc_requester(struct requester *requester, uint32_t block_count)
{
	if (!block_count)
		return 0;
	requester->inflight = calloc(block_count, sizeof(struct inflight));
	return requester->inflight ? 0 : -ENOMEM;
}

static int alloc_dc(struct hca_qp *qp, const struct hca_qp_attr *attr)
{
	if (attr->type == QP_TYPE_DCI) {
		qp->dci = dci_new(attr->dci_errored_streams);
		return qp->dci ? 0 : -ENOMEM;
	}
	if (attr->type == QP_TYPE_DCT) {
		qp->dct = dct_new(attr->dc_access_key);
		return qp->dct ? 0 : -ENOMEM;
	}
	return 0;
}

/* Returns the maximum number of segments of a receive, own or from an SRQ. */
static size_t receive_segments(const struct hca_qp_attr *attr)
{
	return attr->srq || attr->xrcd ? RECEIVE_SEGMENTS : attr->rq_count ? rq_segments(attr->rq_shift) : 0;
}

static struct hca_qp *qp_new(const struct hca_qp_attr *attr)
{
	struct hca_qp *qp = calloc(1, sizeof(*qp) + receive_segments(attr) * sizeof(struct mlx5_wqe_data_seg));

	if (!qp)
		return NULL;
	queue_lock_init(&qp->lock, LOCK_LEVEL_QP, false);
	if (!alloc_requester(&qp->requester, attr->sq_wqebb_count) && !alloc_dc(qp, attr))
		return qp;
	qp_free(qp);
	return NULL;
}

static void qp_init(struct hca_qp *qp, struct hca_context *context, const struct hca_qp_attr *attr)
{
	qp->hca = context->hca;
	qp->pd = attr->pd;
	qp->type = attr->type;
	qp->transport = transport_of(attr->type);
	qp->state = IBV_QPS_RESET;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->sender.resume = qp_resume;
	qp->requester.ring = attr->sq_buffer;
	qp->requester.block_count = attr->sq_wqebb_count;
	qp->requester.dbrec = attr->dbrec ? &attr->dbrec[MLX5_SND_DBR] : NULL;
	timer_init(&qp->requester.timer, run_requester_timer);
	qp->rq = (struct hca_rq){
		.buffer = attr->rq_buffer,
		.count = attr->rq_count,
		.shift = attr->rq_shift,
		.dbrec = attr->dbrec ? &attr->dbrec[MLX5_RCV_DBR] : NULL,
	};
	qp->user_index = attr->user_index;
	qp->cookie = attr->cookie;
	qp->wr_id_of = attr->wr_id_of;
	qp->umr_name_of = attr->umr_name_of;
	qp->cap = attr->cap;
	qp->access = (struct walk_access){
		.hca = qp->hca,
		.pd = qp->pd ? qp->pd->number : 0,
		/* XRC requests come through an SRQ, which owns no windows. */
		.qpn = attr->xrcd ? 0 : qp->number,
		.qp_serial = __atomic_add_fetch(&qp->hca->next_serial, 1, __ATOMIC_RELAXED),
	};
	qp->stop_at_signature_error = attr->stop_at_signature_error;
	qp->block_self_multicast = attr->block_self_multicast;
	qp->scatter_to_cqe = attr->scatter_to_cqe;
	qp_observe_signatures(qp);
	if (attr->xrcd)
		return;
	qp_opener_init(&qp->own, context, attr->cookie);
	qp->openers = &qp->own;
}

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **out)
{
	struct hca_qp *qp = qp_new(attr);
	int error;

	if (!qp)
		return -ENOMEM;
	if (id_table_alloc(&the_registry.qps, &qp->number)) {
		qp_free(qp);
		return -ENOMEM;
	}
	qp_init(qp, context, attr);
	if (attr->in_umem && qp_copy_rings(qp, attr)) {
		id_table_release(&the_registry.qps, qp->number);
		qp_free(qp);
		return -ENOMEM;
	}
	if (attr->xrcd && xrc_qp_join(qp, attr->xrcd, attr->cookie)) {
		id_table_release(&the_registry.qps, qp->number);
		qp_free(qp);
		return -ENOMEM;
	}
	hold_references(qp);
	id_table_publish(&the_registry.qps, qp->number, qp);
	counter_add(qp->hca, COUNTER_QPS_CREATED, 1);
	*out = qp;
	if (!attr->in_umem)
		return 0;
	qp_ignore_record(qp);
	error = qp_start_watch(qp, attr->dbrec, true);
	if (error)
		qp_destroy(qp);
	return error;
}

/* Stops waiting for room. The lock is held. */
static void leave_queues(struct hca_qp *qp)
{
	link_leave(&qp->sender);
	link_dequeue(&qp->requester.waiter);
	for (struct answers *answers = qp->unsent_answers; answers; answers = answers->next)
		link_dequeue(&answers->waiter);
}

/* Makes the QP unreachable, then stops its timer, then waits for threads that use it. */
void qp_destroy(struct hca_qp *qp)
{
	struct id_table *qps = &the_registry.qps;

	queue_lock(&qp->lock);
	qp->destroyed = true;
	qp_return_receive(qp);
	qp_set_state(qp, IBV_QPS_RESET);
	if (unlikely(qp->granted))
		grants_revoke();
	requester_reset(qp);
	leave_queues(qp);
	queue_unlock(&qp->lock);
	if (qp->dci)
		qp_leave_target(qp);
	if (qp->domain)
		xrc_qp_leave(qp);
	early_given_up(qp);
	id_table_unpublish(qps, qp->number);
	if (qp->watch)
		watch_stop(qp->hca->watcher, &qp->watch->watch);
	timer_cancel(&qp->hca->timers, &qp->requester.timer);
	epoch_synchronize();
	if (unlikely(qp->granted))
		grants_revoke_and_drain();
	if (qp->openers)
		qp_opener_purge(qp->openers);
	id_table_release(qps, qp->number);
	counter_add(qp->hca, COUNTER_QPS_DESTROYED, 1);
	drop_references(qp);
	qp_free(qp);
}

int hca_qp_destroy(struct hca_qp *qp)
{
	if (qp->groups)
		return -EBUSY;
	qp_destroy(qp);
	return 0;
}

int hca_qpn_reserve(struct hca *hca, uint32_t *qpn)
{
	(void)hca;
	return id_table_alloc(&the_registry.qps, qpn);
}

int hca_qpn_release(struct hca *hca, uint32_t qpn)
{
	(void)hca;
	if (!id_table_is_reserved(&the_registry.qps, qpn))
		return -EINVAL;
	id_table_release(&the_registry.qps, qpn);
	return 0;
}
