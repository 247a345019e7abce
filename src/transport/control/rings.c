/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings in memory that may be unmapped, and watched doorbell records. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "transport/control/qp.h"
#include "transport/run/doorbell.h"

/* log2 of MLX5_SEND_WQE_BB */
#define SEND_BLOCK_SHIFT 6

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

int qp_copy_rings(struct hca_qp *qp, const struct hca_qp_attr *attr)
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

/* Record of queues to which nothing can be posted. */
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

void qp_free_rings(struct hca_qp *qp)
{
	free_shadow(qp->send_shadow);
	free_shadow(qp->rq.shadow);
}

static void qp_rung(struct watch *watch)
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

/* Returns the watch of @qp, allocated by the first call and freed with the QP. */
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

int qp_start_watch(struct hca_qp *qp, const uint32_t *records, bool in_umem)
{
	struct qp_watch *watch = watch_of(qp, in_umem);

	return watch ? watch_start(qp->hca->watcher, &watch->watch, records, 2, qp_rung) : -ENOMEM;
}

int hca_qp_watch(struct hca_qp *qp)
{
	/* The records are adjacent, the receive queue's first (mlx5-formats 1.16). */
	return qp_start_watch(qp, qp->rq.dbrec, false);
}
