/* SPDX-License-Identifier: BSD-2-Clause */
/* Creation, destruction, query and error state of QPs, see hca.h and qp.h. Modify is in qp_modify.c. */
#include "transport/qp.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "observe/counters.h"
#include "hca/grants.h"
#include "format/qp_types.h"
#include "transport/xrc_qps.h"
#include "transport/commands.h"
#include "wire/link.h"
#include "transport/answer.h"
#include "transport/dci.h"
#include "transport/dct.h"
#include "transport/record.h"
#include "transport/transport.h"
#include "wire/routes.h"

/* log2 of MLX5_SEND_WQE_BB */
#define SEND_BLOCK_SHIFT 6

static const int event_types[QP_EVENT_COUNT] = {
	[QP_EVENT_FATAL] = IBV_EVENT_QP_FATAL,
	[QP_EVENT_REQUEST_ERROR] = IBV_EVENT_QP_REQ_ERR,
	[QP_EVENT_ACCESS_ERROR] = IBV_EVENT_QP_ACCESS_ERR,
	[QP_EVENT_COMM_EST] = IBV_EVENT_COMM_EST,
	[QP_EVENT_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
	[QP_EVENT_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
};

void qp_lost_completion(struct hca_qp *qp, const struct hca_cq *cq)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	/* IBTA C11-39: completions are lost, so the QP cannot go on. */
	qp_raise(qp, QP_EVENT_FATAL);
	qp_enter_error(qp, EXPLAIN(qp->hca, (&(const struct explain_subject){.qpn = qp->number}), RULE_CQ_FULL,
				   cq->number, cq->cqe_count));
}

static void set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->flushes, state == IBV_QPS_ERR, __ATOMIC_SEQ_CST);
}

void qp_enter_error(struct hca_qp *qp, uint64_t record)
{
	bool already = qp->state == IBV_QPS_ERR;

	set_state(qp, IBV_QPS_ERR);
	if (unlikely(qp->granted))
		grants_revoke();
	/* For receive doorbells: those that did not see the state have made their entries visible. */
	if (!__libc_single_threaded)
		barrier_on_all_cpus();
	qp->error_record = record;
	requester_enter(qp, REQUESTER_FLUSH);
	requester_flush(qp);
	responder_flush(qp);
	/*
	 * IBTA 11.5.3: a QP on an SRQ says when it takes no more receives from it. From whatever state: UCX keeps a QP that it
	 * gives up until it hears that, one that was never connected as well.
	 */
	if ((qp->srq || qp->domain) && !already)
		qp_raise(qp, QP_EVENT_LAST_WQE);
}

void qp_enter_send_error(struct hca_qp *qp, uint64_t record)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	set_state(qp, IBV_QPS_SQE);
	qp->error_record = record;
	requester_enter(qp, REQUESTER_FLUSH);
	requester_flush(qp);
}

void qp_return_receive(struct hca_qp *qp)
{
	if (qp->dct || (qp->responder.srq && qp->responder.has_receive))
		responder_flush(qp);
}

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

/* ---- rings in memory that may be unmapped ------------------------------------------------------------------------ */

static void free_shadow(struct shadow *shadow)
{
	if (shadow)
		shadow_free(shadow);
	free(shadow);
}

static struct shadow *new_shadow(const void *ring, const uint32_t *record, uint32_t count, uint32_t shift)
{
	struct shadow *shadow = calloc(1, sizeof(*shadow));

	if (shadow && !shadow_init(shadow, ring, record, count, shift))
		return shadow;
	free(shadow);
	return NULL;
}

/* After init_qp(): the device works on copies. */
static int cast_shadows(struct hca_qp *qp, const struct hca_qp_attr *attr)
{
	if (attr->sq_wqebb_count) {
		qp->send_shadow =
			new_shadow(attr->sq_buffer, &attr->dbrec[MLX5_SND_DBR], attr->sq_wqebb_count, SEND_BLOCK_SHIFT);
		if (!qp->send_shadow)
			return -ENOMEM;
		qp->requester.ring = qp->send_shadow->copy;
		qp->requester.dbrec = &qp->send_shadow->index;
	}
	if (attr->rq_count) {
		qp->rq.shadow = new_shadow(attr->rq_buffer, &attr->dbrec[MLX5_RCV_DBR], attr->rq_count, attr->rq_shift);
		if (!qp->rq.shadow)
			return -ENOMEM;
		qp->rq.buffer = qp->rq.shadow->copy;
		qp->rq.dbrec = &qp->rq.shadow->index;
	}
	return 0;
}

void qp_reset_shadows(struct hca_qp *qp)
{
	if (qp->send_shadow)
		shadow_reset(qp->send_shadow);
	if (qp->rq.shadow)
		shadow_reset(qp->rq.shadow);
}

/* The doorbell record of a queue that posts nothing. */
static const uint32_t nothing_posted;

void qp_ignore_record(struct hca_qp *qp)
{
	if (qp->watch && qp->watch->send_record)
		qp->requester.dbrec = &nothing_posted;
}

void qp_obey_record(struct hca_qp *qp)
{
	if (qp->watch && qp->watch->send_record)
		qp->requester.dbrec = qp->watch->send_record;
}

void qp_fetch_requests(struct hca_qp *qp)
{
	struct shadow *shadow = qp->send_shadow;

	if (!shadow)
		return;
	queue_lock(&qp->lock);
	if (!shadow->gone && qp->requester.dbrec == &shadow->index) {
		shadow_fetch(shadow);
		if (shadow->gone && qp->state != IBV_QPS_ERR) {
			qp_raise(qp, QP_EVENT_FATAL);
			qp_enter_error(qp,
				       EXPLAIN(qp->hca, (&(const struct explain_subject){.qpn = qp->number}),
					       RULE_UMEM_QP_GONE, (uintptr_t)shadow->ring, (uintptr_t)shadow->record));
		}
	}
	queue_unlock(&qp->lock);
}

static void free_qp(struct hca_qp *qp)
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
	free_shadow(qp->send_shadow);
	free_shadow(qp->rq.shadow);
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

/* Segments of the receives that a QP can take: those of its own queue, or of any entry of an SRQ. */
static size_t receive_segments(const struct hca_qp_attr *attr)
{
	return attr->srq || attr->xrcd ? RECEIVE_SEGMENTS : attr->rq_count ? rq_segments(attr->rq_shift) : 0;
}

static struct hca_qp *new_qp(const struct hca_qp_attr *attr)
{
	struct hca_qp *qp = calloc(1, sizeof(*qp) + receive_segments(attr) * sizeof(struct mlx5_wqe_data_seg));

	if (!qp)
		return NULL;
	queue_lock_init(&qp->lock, LOCK_LEVEL_QP, false);
	if (!alloc_requester(&qp->requester, attr->sq_wqebb_count) && !alloc_dc(qp, attr))
		return qp;
	free_qp(qp);
	return NULL;
}

static void init_qp(struct hca_qp *qp, struct hca_context *context, const struct hca_qp_attr *attr)
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
	timer_init(&qp->requester.timer, requester_timer);
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
		/* Requests of XRC come through an SRQ, which owns no windows. */
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

static void rung(struct watch *watch);

/* The watch is made once, and goes with the QP. */
static struct qp_watch *watch_of(struct hca_qp *qp, bool in_umem)
{
	struct qp_watch *watch;

	queue_lock(&qp->lock);
	if (!qp->watch) {
		qp->watch = calloc(1, sizeof(*qp->watch));
		if (qp->watch) {
			qp->watch->qp = qp;
			qp->watch->send_record = qp->requester.dbrec;
			qp->watch->watch.in_umem = in_umem;
		}
	}
	watch = qp->watch;
	queue_unlock(&qp->lock);
	return watch;
}

static int start_watch(struct hca_qp *qp, const uint32_t *records, bool in_umem)
{
	struct qp_watch *watch = watch_of(qp, in_umem);

	return watch ? watch_start(qp->hca->watcher, &watch->watch, records, 2, rung) : -ENOMEM;
}

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **out)
{
	struct hca_qp *qp = new_qp(attr);
	int error;

	if (!qp)
		return -ENOMEM;
	if (id_table_alloc(&the_registry.qps, &qp->number)) {
		free_qp(qp);
		return -ENOMEM;
	}
	init_qp(qp, context, attr);
	if (attr->in_umem && cast_shadows(qp, attr)) {
		id_table_release(&the_registry.qps, qp->number);
		free_qp(qp);
		return -ENOMEM;
	}
	if (attr->xrcd && xrc_qp_join(qp, attr->xrcd, attr->cookie)) {
		id_table_release(&the_registry.qps, qp->number);
		free_qp(qp);
		return -ENOMEM;
	}
	hold_references(qp);
	id_table_publish(&the_registry.qps, qp->number, qp);
	counter_add(qp->hca, COUNTER_QPS_CREATED, 1);
	*out = qp;
	if (!attr->in_umem)
		return 0;
	qp_ignore_record(qp);
	error = start_watch(qp, attr->dbrec, true);
	if (error)
		qp_destroy(qp);
	return error;
}

/* Neither the requester nor what is owed waits for room, now or later. The lock is held. */
static void leave_queues(struct hca_qp *qp)
{
	link_leave(&qp->sender);
	link_dequeue(&qp->requester.waiter);
	for (struct answers *answers = qp->owing; answers; answers = answers->next)
		link_dequeue(&answers->waiter);
}

/* First out of reach, then the timer, then wait for those who reached it before. */
void qp_destroy(struct hca_qp *qp)
{
	struct id_table *qps = &the_registry.qps;

	queue_lock(&qp->lock);
	qp_return_receive(qp);
	set_state(qp, IBV_QPS_RESET);
	if (unlikely(qp->granted))
		grants_revoke();
	requester_reset(qp);
	leave_queues(qp);
	queue_unlock(&qp->lock);
	if (qp->dci)
		dci_leave(qp);
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
	free_qp(qp);
}

int hca_qp_destroy(struct hca_qp *qp)
{
	if (qp->groups)
		return -EBUSY;
	qp_destroy(qp);
	return 0;
}

uint32_t hca_qp_number(const struct hca_qp *qp)
{
	return qp->number;
}

struct hca_qp *hca_qp_find(const struct hca_context *context, uint32_t number)
{
	struct hca_qp *qp;

	epoch_enter();
	qp = number <= PSN_MASK ? qp_find(number) : NULL;
	epoch_leave();
	return qp && qp->own.context == context ? qp : NULL;
}

void hca_qp_creation(const struct hca_qp *qp, struct hca_qp_attr *attr)
{
	*attr = (struct hca_qp_attr){
		.type = qp->type,
		.pd = qp->pd,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.sq_wqebb_count = qp->requester.block_count,
		.in_umem = qp->send_shadow || qp->rq.shadow,
		.rq_count = qp->rq.count,
		.rq_shift = qp->rq.shift,
		.user_index = qp->user_index,
		.cap = qp->cap,
		.stop_at_signature_error = qp->stop_at_signature_error,
		.block_self_multicast = qp->block_self_multicast,
		.scatter_to_cqe = qp->scatter_to_cqe,
		.dc_access_key = qp->dct ? qp->dct->access_key : 0,
		.dci_errored_streams = qp->dci ? qp->dci->limit : 0,
	};
}

enum ibv_qp_type hca_qp_type(const struct hca_qp *qp)
{
	return qp->type;
}

bool hca_qp_exists(uint32_t number)
{
	bool exists;

	epoch_enter();
	exists = number <= PSN_MASK && qp_find(number);
	epoch_leave();
	return exists;
}

enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

/*
 * Fills in fields that were never set as the context of an adapter has them (mlx5-formats 4.1, "A fresh QP"). Programs query a port by
 * the number in them, and pass the other attributes back to ibv_modify_qp().
 */
static void fill_defaults(const struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	bool has_path = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC || qp->type == IBV_QPT_XRC_SEND ||
			qp->type == IBV_QPT_XRC_RECV;

	if (!attr->port_num)
		attr->port_num = 1;
	if (!attr->max_rd_atomic)
		attr->max_rd_atomic = 1;
	if (!attr->max_dest_rd_atomic)
		attr->max_dest_rd_atomic = 1;
	if (has_path && !attr->path_mtu)
		attr->path_mtu = IBV_MTU_256;
	if (has_path && !attr->ah_attr.port_num) {
		attr->ah_attr.port_num = 1;
		attr->ah_attr.is_global = 1;
	}
}

int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	queue_lock(&qp->lock);
	*attr = (struct ibv_qp_attr){
		.qp_state = qp->state,
		.cur_qp_state = qp->state,
		.path_mtu = qp->attr.path_mtu,
		.path_mig_state = qp->attr.path_mig_state,
		.qkey = qp->attr.qkey,
		.rq_psn = qp->responder.expected_psn,
		.sq_psn = qp->requester.psn,
		.dest_qp_num = qp->attr.dest_qp_num,
		.qp_access_flags = qp->attr.qp_access_flags,
		.cap = qp->cap,
		.ah_attr = qp->attr.ah_attr,
		.pkey_index = qp->attr.pkey_index,
		.en_sqd_async_notify = qp->attr.en_sqd_async_notify,
		.sq_draining = qp->attr.sq_draining,
		.max_rd_atomic = qp->attr.max_rd_atomic,
		.max_dest_rd_atomic = qp->attr.max_dest_rd_atomic,
		.min_rnr_timer = qp->attr.min_rnr_timer,
		.port_num = qp->attr.port_num,
		.timeout = qp->attr.timeout,
		.retry_cnt = qp->attr.retry_cnt,
		.rnr_retry = qp->attr.rnr_retry,
	};
	queue_unlock(&qp->lock);
	fill_defaults(qp, attr);
	return 0;
}

void hca_qp_recv_doorbell(struct hca_qp *qp)
{
	/*
	 * Pairs with qp_enter_error: either the flush sees the new entry, or this sees the state. That is rare, so the
	 * barrier is there; here it is enough that the compiler keeps the order.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!the_registry.has_barrier, 0) && !__libc_single_threaded)
		__atomic_exchange_n(&qp->recv_barrier, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&qp->flushes, __ATOMIC_RELAXED))
		return;
	queue_lock(&qp->lock);
	if (qp->state == IBV_QPS_ERR)
		responder_flush(qp);
	queue_unlock(&qp->lock);
}

static void rung(struct watch *watch)
{
	struct hca_qp *qp = ((struct qp_watch *)((char *)watch - offsetof(struct qp_watch, watch)))->qp;

	hca_qp_recv_doorbell(qp);
	if (__atomic_load_n(&watch->stale, __ATOMIC_RELAXED))
		return;
	queue_lock(&qp->lock);
	if (qp->state >= IBV_QPS_RTS && !qp->watch->starting)
		qp_obey_record(qp);
	queue_unlock(&qp->lock);
	qp_fetch_requests(qp);
	hca_qp_send_doorbell(qp);
}

int hca_qp_watch(struct hca_qp *qp)
{
	/* The records are next to each other, the receive queue's first (mlx5-formats 1.16). */
	return start_watch(qp, qp->rq.dbrec, false);
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
