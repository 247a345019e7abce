/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues, basic and XRC: ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_query_srq(3),
 * ibv_get_srq_num(3), ibv_destroy_srq.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/events.h"
#include "verbs/object/lint.h"
#include "verbs/object/ops.h"
#include "verbs/queue/srq.h"

static int srq_check_capacity(struct hca *hca, const char *call, const struct ibv_srq_attr *attr)
{
	if (attr->max_wr > LIMIT_MAX_SRQ_WR)
		return REFUSE(hca, call, EINVAL, RULE_SRQ_MAX_WR, attr->max_wr, LIMIT_MAX_SRQ_WR);
	if (attr->max_sge > LIMIT_MAX_SRQ_SGE)
		return REFUSE(hca, call, EINVAL, RULE_SRQ_MAX_SGE, attr->max_sge, LIMIT_MAX_SRQ_SGE);
	return 0;
}

/* Returns an errno value. */
static int srq_alloc(struct user_srq *srq, struct hca *hca, const char *call, const struct ibv_srq_attr *attr)
{
	size_t bytes;

	srq_size_entries(srq, attr->max_sge);
	srq->entry_count = srq_entries_for(attr->max_wr);
	srq->max_wr = srq->entry_count - 1;
	bytes = (size_t)srq->entry_count << srq->entry_shift;
	srq->wr_id = calloc(srq->entry_count, sizeof(*srq->wr_id));
	if (srq->wr_id)
		srq->buffer = ring_alloc(srq->pd, bytes, MLX5DV_RES_TYPE_SRQ);
	if (srq->buffer)
		srq->dbrec = dbrec_alloc(srq->pd);
	if (!srq->dbrec)
		return REFUSE(hca, call, errno ? errno : ENOMEM, RULE_QUEUE_MEMORY, bytes);
	srq_chain(srq, 0);
	return 0;
}

static void srq_free(struct user_srq *srq)
{
	if (srq->dbrec)
		dbrec_free(srq->pd, srq->dbrec);
	if (srq->buffer)
		ring_free(srq->pd, srq->buffer, (size_t)srq->entry_count << srq->entry_shift, MLX5DV_RES_TYPE_SRQ);
	free(srq->wr_id);
	queue_lock_destroy(&srq->lock);
	free(srq);
}

/* @xrcd: NULL for a basic SRQ. Returns an errno value. */
static int srq_create_in_device(struct user_srq *srq, struct user_xrcd *xrcd)
{
	/* ibv_create_srq(3): srq_limit is irrelevant; ibv_modify_srq(3) arms it. */
	const struct hca_srq_attr attr = {
		.buffer = srq->buffer,
		.entry_count = srq->entry_count,
		.entry_shift = srq->entry_shift,
		.dbrec = srq->dbrec,
		.cookie = srq,
		.xrcd = xrcd ? xrcd->device : NULL,
		.cq = xrcd ? srq->cq->device : NULL,
		.user_index = srq->user_index,
	};

	return -hca_srq_create(srq->pd->device, &attr, &srq->device);
}

static void srq_publish(struct user_srq *srq, struct ibv_pd *pd, void *srq_context)
{
	srq->base.context = pd->context;
	srq->base.srq_context = srq_context;
	srq->base.pd = pd;
	srq->base.handle = hca_srq_number(srq->device);
	pthread_mutex_init(&srq->base.mutex, NULL);
	pthread_cond_init(&srq->base.cond, NULL);
	object_enter(&srq->base, &srq->alive, pd->context);
}

/* Assigns the user index before the device can write a CQE with it. Returns an errno value. */
static int srq_join(struct user_srq *srq, struct user_xrcd *xrcd)
{
	struct user_index_table *table;
	int error;

	if (!xrcd)
		return srq_create_in_device(srq, NULL);
	table = &to_user_context(xrcd->base.context)->qps;
	error = -user_index_add_srq(table, srq, &srq->user_index);
	if (error)
		return error;
	error = srq_create_in_device(srq, xrcd);
	if (error)
		user_index_remove(table, srq->user_index);
	return error;
}

struct xrc_attr {
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
};

/* @xrc: NULL for a basic SRQ. Fills @attr with the actual capacities. Returns NULL with errno set on failure. */
static struct ibv_srq *srq_create(struct ibv_pd *pd, const char *call, void *srq_context, struct ibv_srq_attr *attr,
				  const struct xrc_attr *xrc)
{
	struct hca *hca = hca_of_context(pd->context);
	struct user_srq *srq;
	int error = srq_check_capacity(hca, call, attr);

	if (error)
		goto fail;
	error = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto fail;
	srq->pd = to_user_pd(pd);
	srq->type = xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	srq->cq = xrc ? to_user_cq(xrc->cq) : NULL;
	queue_lock_init(&srq->lock, LOCK_LEVEL_USER_SRQ, queue_single_threaded(srq->pd));
	error = srq_alloc(srq, hca, call, attr);
	if (!error)
		error = srq_join(srq, xrc ? to_user_xrcd(xrc->xrcd) : NULL);
	if (error) {
		srq_free(srq);
		goto fail;
	}
	srq_publish(srq, pd, srq_context);
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return &srq->base;
fail:
	errno = error;
	return NULL;
}

struct ibv_srq *softhca_ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (object_refused("ibv_create_srq", NULL, pd))
		return NULL;
	return srq_create(pd, "ibv_create_srq", attr->srq_context, &attr->attr, NULL);
}

static enum ibv_srq_type srq_type_of(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
}

static int srq_check_xrc(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	struct hca *hca = hca_of_context(context);

	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD && optional_refused("ibv_create_srq_ex", context, attr->xrcd)) ||
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ && optional_refused("ibv_create_srq_ex", context, attr->cq)))
		return errno;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd || attr->xrcd->context != context)
		return REFUSE(hca, "ibv_create_srq_ex", EINVAL, RULE_SRQ_XRCD, attr->comp_mask);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq || attr->cq->context != context)
		return REFUSE(hca, "ibv_create_srq_ex", EINVAL, RULE_SRQ_CQ, attr->comp_mask);
	if (attr->pd->context != context)
		return REFUSE(hca, "ibv_create_srq_ex", EINVAL, RULE_SRQ_PD, attr->comp_mask);
	return 0;
}

static int srq_check_extended(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	struct hca *hca = hca_of_context(context);
	enum ibv_srq_type type = srq_type_of(attr);

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return REFUSE(hca, "ibv_create_srq_ex", EOPNOTSUPP, RULE_SRQ_COMP_MASK, attr->comp_mask,
			      IBV_SRQ_INIT_ATTR_RESERVED - 1);
	switch (type) {
	case IBV_SRQT_BASIC:
	case IBV_SRQT_XRC:
		break;
	case IBV_SRQT_TM: /* tag matching */
		return REFUSE(hca, "ibv_create_srq_ex", EOPNOTSUPP, RULE_SRQ_TYPE, type);
	default:
		return REFUSE(hca, "ibv_create_srq_ex", EINVAL, RULE_SRQ_TYPE, type);
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return REFUSE(hca, "ibv_create_srq_ex", EINVAL, RULE_SRQ_PD, attr->comp_mask);
	if (object_refused("ibv_create_srq_ex", context, attr->pd))
		return errno;
	return type == IBV_SRQT_XRC ? srq_check_xrc(context, attr) : 0;
}

struct ibv_srq *softhca_ibv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const struct xrc_attr xrc = {attr->xrcd, attr->cq};
	int error = srq_check_extended(context, attr);

	if (error) {
		errno = error;
		return NULL;
	}
	return srq_create(attr->pd, "ibv_create_srq_ex", attr->srq_context, &attr->attr,
			  srq_type_of(attr) == IBV_SRQT_XRC ? &xrc : NULL);
}

/* ibv_modify_srq(3): if any attribute is invalid, none is modified. The SRQ lock is held. */
static int srq_check_modify(const struct user_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct hca *hca = hca_of_context(srq->base.context);
	uint32_t max_wr = srq->max_wr;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return REFUSE(hca, "ibv_modify_srq", EINVAL, RULE_SRQ_MODIFY_MASK, mask);
	if (mask & IBV_SRQ_MAX_WR) {
		if (attr->max_wr > LIMIT_MAX_SRQ_WR)
			return REFUSE(hca, "ibv_modify_srq", EINVAL, RULE_SRQ_MAX_WR, attr->max_wr, LIMIT_MAX_SRQ_WR);
		if (attr->max_wr < srq->used)
			return REFUSE(hca, "ibv_modify_srq", EINVAL, RULE_SRQ_SHRINK, attr->max_wr, srq->used);
		max_wr = srq_entries_for(attr->max_wr) - 1;
	}
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > max_wr)
		return REFUSE(hca, "ibv_modify_srq", EINVAL, RULE_SRQ_LIMIT, attr->srq_limit, max_wr);
	return 0;
}

int softhca_ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask)
{
	struct user_srq *srq = to_user_srq(base);
	int error;

	if (object_refused("ibv_modify_srq", NULL, base))
		return errno;
	queue_lock(&srq->lock);
	error = srq_check_modify(srq, attr, mask);
	if (!error && mask & IBV_SRQ_MAX_WR)
		error = -srq_resize(srq, attr->max_wr);
	if (!error && mask & IBV_SRQ_LIMIT)
		error = -hca_srq_set_limit(srq->device, attr->srq_limit);
	queue_unlock(&srq->lock);
	if (!error && mask & IBV_SRQ_LIMIT)
		LINT(srq_armed, srq, attr->srq_limit);
	return error;
}

int softhca_ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr)
{
	struct user_srq *srq = to_user_srq(base);

	if (object_refused("ibv_query_srq", NULL, base))
		return errno;
	queue_lock(&srq->lock);
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = hca_srq_limit(srq->device);
	queue_unlock(&srq->lock);
	return 0;
}

int softhca_ibv_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	if (object_refused("ibv_get_srq_num", NULL, srq))
		return errno;
	*srq_num = hca_srq_number(to_user_srq(srq)->device);
	return 0;
}

int softhca_ibv_destroy_srq(struct ibv_srq *base)
{
	struct user_srq *srq = to_user_srq(base);

	if (object_refused("ibv_destroy_srq", NULL, base))
		return errno;
	if (hca_srq_destroy(srq->device))
		return refuse_ignorable(hca_of_context(base->context), "ibv_destroy_srq", EBUSY, RULE_SRQ_IN_USE,
					FIGURES(base->handle));
	object_leave(&srq->alive);
	events_wait(base->context, "ibv_destroy_srq", "SRQ", &srq->async_events_taken, &srq->base.events_completed);
	if (srq->type == IBV_SRQT_XRC) {
		user_cq_purge_srq(srq);
		user_index_remove(&to_user_context(base->context)->qps, srq->user_index);
	}
	LINT(srq_destroyed, srq);
	pthread_cond_destroy(&base->cond);
	pthread_mutex_destroy(&base->mutex);
	srq_free(srq);
	return 0;
}
