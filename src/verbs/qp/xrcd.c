/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains and XRC_RECV QPs. Errno values: those of the kernel's uverbs. */
#include <errno.h>
#include <stdlib.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/events.h"
#include "verbs/object/ops.h"
#include "verbs/qp/qp_check.h"
#include "verbs/post/send_operations.h"
#include "verbs/qp/xrcd.h"

enum {
	XRCD_MASK = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
	OPEN_NEEDED = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
	OPEN_ALLOWED = OPEN_NEEDED | IBV_QP_OPEN_ATTR_CONTEXT,
};

/* Returns the errno value. */
static int xrcd_refuse_open(struct hca *hca, int error, int fd)
{
	switch (error) {
	case EBADF:
		return REFUSE(hca, "ibv_open_xrcd", EBADF, RULE_XRCD_DESCRIPTOR, (int64_t)fd);
	case EAGAIN:
		return REFUSE(hca, "ibv_open_xrcd", EAGAIN, RULE_XRCD_NONE, (int64_t)fd);
	case EINVAL:
		return REFUSE(hca, "ibv_open_xrcd", EINVAL, RULE_XRCD_EXISTS, (int64_t)fd);
	default:
		return error;
	}
}

static int open_xrcd(struct ibv_context *context, const struct ibv_xrcd_init_attr *attr, struct hca_xrcd **xrcd)
{
	struct hca *hca = hca_of_context(context);
	int error;

	if (attr->comp_mask & ~(uint32_t)XRCD_MASK)
		return REFUSE(hca, "ibv_open_xrcd", EOPNOTSUPP, RULE_XRCD_COMP_MASK, attr->comp_mask, XRCD_MASK);
	if (attr->comp_mask != XRCD_MASK)
		return REFUSE(hca, "ibv_open_xrcd", EINVAL, RULE_XRCD_COMP_MASK, attr->comp_mask, XRCD_MASK);
	error = -hca_xrcd_open(to_user_context(context)->device, attr->fd, attr->oflags, xrcd);
	return error ? xrcd_refuse_open(hca, error, attr->fd) : 0;
}

struct ibv_xrcd *softhca_ibv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct user_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int error;

	if (!xrcd)
		return NULL;
	error = open_xrcd(context, attr, &xrcd->device);
	if (error) {
		free(xrcd);
		errno = error;
		return NULL;
	}
	xrcd->base.context = context;
	object_enter(&xrcd->base, &xrcd->alive, context);
	return &xrcd->base;
}

int softhca_ibv_close_xrcd(struct ibv_xrcd *base)
{
	struct user_xrcd *xrcd = to_user_xrcd(base);

	if (object_refused("ibv_close_xrcd", NULL, base))
		return errno;
	if (hca_xrcd_close(xrcd->device))
		return refuse_ignorable(hca_of_context(base->context), "ibv_close_xrcd", EBUSY, RULE_XRCD_IN_USE,
					FIGURES(0));
	object_leave(&xrcd->alive);
	free(xrcd);
	return 0;
}

static int qp_check_open(struct ibv_context *context, const struct ibv_qp_open_attr *attr)
{
	struct hca *hca = hca_of_context(context);

	if (attr->comp_mask & ~(uint32_t)OPEN_ALLOWED)
		return REFUSE(hca, "ibv_open_qp", EOPNOTSUPP, RULE_QP_OPEN_MASK, attr->comp_mask, OPEN_NEEDED,
			      OPEN_ALLOWED);
	if ((attr->comp_mask & OPEN_NEEDED) != OPEN_NEEDED)
		return REFUSE(hca, "ibv_open_qp", EINVAL, RULE_QP_OPEN_MASK, attr->comp_mask, OPEN_NEEDED,
			      OPEN_ALLOWED);
	if (optional_refused("ibv_open_qp", context, attr->xrcd))
		return errno;
	if (!attr->xrcd || attr->xrcd->context != context)
		return REFUSE(hca, "ibv_open_qp", EINVAL, RULE_QP_OPEN_XRCD, attr->qp_num);
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return REFUSE(hca, "ibv_open_qp", EINVAL, RULE_QP_OPEN_NONE, attr->qp_num, (int64_t)attr->qp_type);
	return 0;
}

/* Without a QP in the device. Returns NULL without memory. */
static struct user_qp *xrc_recv_alloc(struct ibv_context *context, void *qp_context)
{
	struct user_qp *qp = user_qp_alloc(false);

	if (!qp)
		return NULL;
	qp->type = IBV_QPT_XRC_RECV;
	qp->sq.max_gs = -1;
	rq_set_limit(&qp->rq, -1);
	queue_lock_init(&qp->sq.lock, LOCK_LEVEL_SEND_QUEUE, false);
	queue_lock_init(&qp->rq.lock, LOCK_LEVEL_RECEIVE_QUEUE, false);
	qp->base.context = context;
	qp->base.qp_context = qp_context;
	qp->base.qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&qp->base.mutex, NULL);
	pthread_cond_init(&qp->base.cond, NULL);
	return qp;
}

static void xrc_recv_free(struct user_qp *qp)
{
	pthread_cond_destroy(&qp->base.cond);
	pthread_mutex_destroy(&qp->base.mutex);
	queue_lock_destroy(&qp->rq.lock);
	queue_lock_destroy(&qp->sq.lock);
	free(qp);
}

/* Completes @qp, or frees it and sets errno to @error. */
static struct ibv_qp *xrc_recv_finish(struct user_qp *qp, enum ibv_qp_state state, int error)
{
	if (error) {
		xrc_recv_free(qp);
		errno = error;
		return NULL;
	}
	qp->base.qp_num = hca_qp_number(qp->device);
	qp->base.handle = qp->base.qp_num;
	send_queue_derive(qp);
	qp->base.state = state;
	object_enter(&qp->base, &qp->alive, qp->base.context);
	return &qp->base;
}

struct ibv_qp *xrc_recv_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct user_qp *qp = xrc_recv_alloc(context, attr->qp_context);
	const struct hca_qp_attr device_attr = {
		.type = IBV_QPT_XRC_RECV,
		.xrcd = to_user_xrcd(attr->xrcd)->device,
		.cookie = qp,
	};
	struct ibv_qp *base;
	int error;

	if (!qp)
		return NULL;
	error = -hca_qp_create(to_user_context(context)->device, &device_attr, &qp->device);
	if (error)
		error = REFUSE(hca_of_context(context), qp_create_call(attr, NULL), error, RULE_QP_NO_ROOM,
			       LIMIT_MAX_QP);
	base = xrc_recv_finish(qp, IBV_QPS_RESET, error);
	if (base)
		attr->cap = qp->cap;
	return base;
}

int xrc_recv_destroy(struct user_qp *qp)
{
	object_leave(&qp->alive);
	hca_qp_close(qp->device, qp);
	events_wait(qp->base.context, "ibv_destroy_qp", "QP", &qp->async_events_taken, &qp->base.events_completed);
	xrc_recv_free(qp);
	return 0;
}

struct ibv_qp *softhca_ibv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct user_qp *qp;
	int error = qp_check_open(context, attr);

	if (error) {
		errno = error;
		return NULL;
	}
	qp = xrc_recv_alloc(context, attr->qp_context);
	if (!qp)
		return NULL;
	error = -hca_qp_open(to_user_xrcd(attr->xrcd)->device, attr->qp_num, qp, &qp->device);
	if (error == EINVAL)
		error = REFUSE(hca_of_context(context), "ibv_open_qp", EINVAL, RULE_QP_OPEN_NONE, attr->qp_num,
			       attr->qp_type);
	/* The QP's creator may have moved it to another state. */
	return xrc_recv_finish(qp, IBV_QPS_UNKNOWN, error);
}
