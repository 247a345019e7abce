/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings, doorbell record and side tables are freed after the device's QP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/events.h"
#include "verbs/object/lint.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/qp/qp_check.h"
#include "verbs/qp/qp_sizing.h"
#include "verbs/post/send_operations.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/qp/xrcd.h"

struct user_qp *user_qp_alloc(bool builders)
{
	return calloc(1, builders ? sizeof(struct user_qp) : offsetof(struct user_qp, base) + sizeof(struct ibv_qp));
}

/* One block for all side tables, the widest first. */
static int qp_alloc_send_tables(struct send_queue *sq)
{
	size_t count = sq->wqebb_count;

	if (!count)
		return 0;
	sq->wr_id = calloc(count,
			   sizeof(*sq->wr_id) + sizeof(*sq->wqe_head) + sizeof(*sq->wqe_post) + sizeof(*sq->wc_opcode));
	if (!sq->wr_id)
		return -ENOMEM;
	sq->wqe_head = (uint32_t *)(sq->wr_id + count);
	sq->wqe_post = sq->wqe_head + count;
	sq->wc_opcode = (uint8_t *)(sq->wqe_post + count);
	return 0;
}

/* The RQ comes first, then the SQ (mlx5-formats 1.1); the size of the RQ is a multiple of 64 bytes. */
static int qp_alloc_rings(struct user_qp *qp)
{
	size_t rq_bytes = (size_t)qp->rq.count << qp->rq.shift;

	qp->buffer_size = rq_bytes + (size_t)qp->sq.wqebb_count * WQE_BLOCK;
	if (qp->buffer_size) {
		qp->buffer = ring_alloc(qp->pd, qp->buffer_size, MLX5DV_RES_TYPE_QP);
		if (!qp->buffer)
			return -errno;
	}
	qp->rq.buffer = qp->rq.count ? qp->buffer : NULL;
	qp->sq.buffer = qp->sq.wqebb_count ? (char *)qp->buffer + rq_bytes : NULL;

	qp->dbrec = dbrec_alloc(qp->pd);
	if (!qp->dbrec)
		return -errno;
	if (qp->rq.count) {
		qp->rq.wr_id = calloc(qp->rq.count, sizeof(*qp->rq.wr_id));
		if (!qp->rq.wr_id)
			return -ENOMEM;
	}
	return qp_alloc_send_tables(&qp->sq);
}

/* Frees a QP, complete or not. */
static void user_qp_free(struct user_qp *qp)
{
	free(qp->sq.wr_id);
	free(qp->rq.wr_id);
	if (qp->dbrec)
		dbrec_free(qp->pd, qp->dbrec);
	if (qp->buffer)
		ring_free(qp->pd, qp->buffer, qp->buffer_size, MLX5DV_RES_TYPE_QP);
	queue_lock_destroy(&qp->sq.lock);
	queue_lock_destroy(&qp->rq.lock);
	pthread_cond_destroy(&qp->base.cond);
	pthread_mutex_destroy(&qp->base.mutex);
	free(qp);
}

static void qp_set_sizes(struct user_qp *qp, const struct qp_sizing *sizing)
{
	uint32_t pointers = sizing->cap.max_send_sge * WQE_UNIT;
	uint32_t inline_data = sizing->cap.max_inline_data;
	uint32_t inlined = inline_data ? wqe_round(sizeof(struct mlx5_wqe_inl_data_seg) + inline_data) : 0;

	qp->cap = sizing->cap;
	qp->sq.wqebb_count = sizing->wqebb_count;
	qp->sq.wqe_size = sizing->wqe_size;
	if (sizing->wqebb_count) {
		qp->sq.max_post = sizing->cap.max_send_wr;
		qp->sq.max_inline = inline_data;
		qp->sq.max_payload = pointers > inlined ? pointers : inlined;
	}
	qp->rq.count = sizing->rq_count;
	qp->rq.shift = sizing->rq_shift;
}

static void qp_set_dc_attributes(struct user_qp *qp, const struct mlx5dv_qp_init_attr *dv)
{
	const struct mlx5dv_dc_init_attr *attr = &dv->dc_init_attr;

	qp->dc_type = attr->dc_type;
	if (attr->dc_type == MLX5DV_DCTYPE_DCT)
		qp->dc_access_key = attr->dct_access_key;
	else if (dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
		qp->dci_errored_streams = 1u << attr->dci_streams.log_num_errored;
}

/* MLX5_SCATTER_TO_CQE is read at each creation, as in libmlx5. */
static bool scatter_is_on(void)
{
	const char *value = variable_get(VARIABLE_MLX5_SCATTER_TO_CQE);

	return !value || strcmp(value, "0") != 0;
}

static uint64_t requested_dv_operations(const struct mlx5dv_qp_init_attr *dv)
{
	return dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS ? dv->send_ops_flags : 0;
}

static void qp_set_attributes(struct user_qp *qp, struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
			      const struct mlx5dv_qp_init_attr *dv)
{
	bool single_threaded;

	qp->pd = to_user_pd(attr->pd);
	qp->type = attr->qp_type;
	qp->sq_sig_all = attr->sq_sig_all;
	qp->has_ex = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (qp->has_ex)
		qp->send_ops = attr->send_ops_flags;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		qp->block_self_multicast = attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)
		qp_set_dc_attributes(qp, dv);
	if (dv && dv->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) {
		qp->signature_pipelining = dv->create_flags & MLX5DV_QP_CREATE_SIG_PIPELINING;
		qp->scatter_to_cqe = dv->create_flags & MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE && scatter_is_on();
	}
	qp->dv_send_ops = requested_dv_operations(dv);

	qp->base.context = context;
	qp->base.qp_context = attr->qp_context;
	qp->base.pd = attr->pd;
	qp->base.send_cq = attr->send_cq;
	qp->base.recv_cq = attr->recv_cq;
	qp->base.srq = attr->srq;
	qp->base.state = IBV_QPS_RESET;
	qp->base.qp_type = attr->qp_type;
	pthread_mutex_init(&qp->base.mutex, NULL);
	pthread_cond_init(&qp->base.cond, NULL);

	single_threaded = queue_single_threaded(qp->pd);
	queue_lock_init(&qp->sq.lock, LOCK_LEVEL_SEND_QUEUE, single_threaded);
	queue_lock_init(&qp->rq.lock, LOCK_LEVEL_RECEIVE_QUEUE, single_threaded);
}

/* For explanations: the device identifies WQEs by index. */
static uint64_t qp_wr_id_of(const void *cookie, uint16_t index)
{
	const struct send_queue *sq = &((const struct user_qp *)cookie)->sq;

	return sq->wr_id[index & (sq->wqebb_count - 1)];
}

static const char *qp_umr_name_of(const void *cookie, uint16_t index)
{
	const struct send_queue *sq = &((const struct user_qp *)cookie)->sq;

	switch (sq->wc_opcode[index & (sq->wqebb_count - 1)]) {
	case IBV_WC_BIND_MW:
		return "BIND_MW";
	case IBV_WC_LOCAL_INV:
		return "LOCAL_INV";
	default:
		return NULL;
	}
}

static enum ibv_qp_type qp_device_type(const struct user_qp *qp)
{
	switch (qp->dc_type) {
	case MLX5DV_DCTYPE_DCI:
		return QP_TYPE_DCI;
	case MLX5DV_DCTYPE_DCT:
		return QP_TYPE_DCT;
	default:
		return qp->type;
	}
}

static int qp_create_in_device(struct user_qp *qp)
{
	const struct hca_qp_attr attr = {
		.type = qp_device_type(qp),
		.pd = qp->pd->device,
		.send_cq = to_user_cq(qp->base.send_cq)->device,
		.recv_cq = qp->base.recv_cq ? to_user_cq(qp->base.recv_cq)->device : NULL,
		.srq = qp->base.srq ? to_user_srq(qp->base.srq)->device : NULL,
		.sq_buffer = qp->sq.buffer,
		.sq_wqebb_count = qp->sq.wqebb_count,
		.rq_buffer = qp->rq.buffer,
		.rq_count = qp->rq.count,
		.rq_shift = qp->rq.shift,
		.dbrec = qp->dbrec,
		.user_index = qp->user_index,
		.cookie = qp,
		.wr_id_of = qp->sq.wqebb_count ? qp_wr_id_of : NULL,
		.umr_name_of = qp->sq.wqebb_count ? qp_umr_name_of : NULL,
		.cap = qp->cap,
		.stop_at_signature_error = qp->signature_pipelining,
		.scatter_to_cqe = qp->scatter_to_cqe,
		.block_self_multicast = qp->block_self_multicast,
		.dc_access_key = qp->dc_access_key,
		.dci_errored_streams = qp->dci_errored_streams,
	};
	int err = hca_qp_create(to_user_context(qp->base.context)->device, &attr, &qp->device);

	if (!err) {
		qp->base.handle = hca_qp_number(qp->device);
		/* A DCT gets its number in RTR, when it becomes reachable, as with a real driver. */
		qp->base.qp_num = qp->dc_type == MLX5DV_DCTYPE_DCT ? 0 : qp->base.handle;
	}
	return err;
}

/* Sets function tables and sizes. */
static int qp_set_operations(struct user_qp *qp, const struct qp_type_info *type, const struct ibv_qp_cap *cap,
			     const char *call)
{
	const struct qp_sizing_request request = {
		.type = type,
		.cap = *cap,
		.send_ops = qp->has_ex ? qp->send_ops : type->assumed_ops,
		.dv_send_ops = qp->dv_send_ops,
		.srq = qp->base.srq,
		.hca = hca_of_context(qp->base.context),
		.call = call,
	};
	struct qp_sizing sizing;
	int err = 0;

	qp->sq.max_gs = -1;
	rq_set_limit(&qp->rq, -1);
	/* A DCT has no queue of its own, even if the capabilities request one. */
	if (qp->dc_type == MLX5DV_DCTYPE_DCT)
		return 0;
	qp->sq.address_bytes = type->address_bytes;
	if (user_qp_has_builders(qp)) {
		err = wr_table_fill(qp, qp->send_ops);
		/* Even without flags: builders that the QP lacks refuse and explain the call. */
		if (!err && dv_builders)
			err = dv_builders->table_fill(qp, qp->dv_send_ops);
	}
	if (!err)
		err = qp_sizing_compute(&request, &sizing);
	if (!err)
		qp_set_sizes(qp, &sizing);
	return err;
}

/* Returns @attr without the attributes that the type lacks. */
static struct ibv_qp_init_attr_ex qp_own_attributes(const struct ibv_qp_init_attr_ex *attr,
						    const struct qp_type_info *type)
{
	struct ibv_qp_init_attr_ex own = *attr;

	if (type->send_only) {
		own.recv_cq = NULL;
		own.cap.max_recv_wr = 0;
		own.cap.max_recv_sge = 0;
	}
	return own;
}

struct ibv_qp *user_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			      struct mlx5dv_qp_init_attr *dv)
{
	struct user_index_table *table = &to_user_context(context)->qps;
	const struct qp_type_info *type;
	struct ibv_qp_init_attr_ex own;
	struct user_qp *qp;
	int err = qp_check(context, attr, dv, &type);

	if (err) {
		errno = -err;
		return NULL;
	}
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return xrc_recv_create(context, attr);
	qp = user_qp_alloc(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS || requested_dv_operations(dv));
	if (!qp)
		return NULL;
	own = qp_own_attributes(attr, type);
	qp_set_attributes(qp, context, &own, dv);
	err = qp_set_operations(qp, type, &own.cap, qp_create_call(attr, dv));
	if (!err)
		err = qp_alloc_rings(qp);
	if (!err)
		err = user_index_add(table, qp, &qp->user_index);
	if (err)
		goto free_memory;
	err = qp_create_in_device(qp);
	if (err == -ENOMEM)
		err = -REFUSE(hca_of_context(context), qp_create_call(attr, dv), ENOMEM, RULE_QP_NO_ROOM, LIMIT_MAX_QP);
	if (err)
		goto remove_index;
	send_queue_derive(qp);

	user_pd_get(qp->pd);
	LINT(qp_created, qp);
	explain_found(hca_of_context(context));
	object_enter(&qp->base, &qp->alive, context);
	/* Real drivers do not return the capabilities of a DCT. */
	if (qp->dc_type != MLX5DV_DCTYPE_DCT)
		attr->cap = qp->cap;
	return &qp->base;

remove_index:
	user_index_remove(table, qp->user_index);
free_memory:
	user_qp_free(qp);
	errno = -err;
	return NULL;
}

struct ibv_qp *softhca_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	if (object_refused("ibv_create_qp", NULL, pd))
		return NULL;
	qp = user_qp_create(pd->context, &attr, NULL);
	if (qp)
		qp_init_attr->cap = attr.cap;
	return qp;
}

struct ibv_qp *softhca_ibv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return user_qp_create(context, attr, NULL);
}

struct ibv_qp_ex *softhca_ibv_qp_to_qp_ex(struct ibv_qp *base)
{
	struct user_qp *qp = to_user_qp(base);

	return qp->has_ex ? &qp->ex : NULL;
}

int softhca_ibv_destroy_qp(struct ibv_qp *base)
{
	struct user_qp *qp = to_user_qp(base);
	int err;

	if (object_refused("ibv_destroy_qp", NULL, base))
		return errno;
	if (qp->type == IBV_QPT_XRC_RECV)
		return xrc_recv_destroy(qp);
	LINT(qp_destroying, qp);
	err = -hca_qp_destroy(qp->device);
	if (err)
		return REFUSE(hca_of_context(base->context), "ibv_destroy_qp", err, RULE_QP_IN_GROUP, base->qp_num);
	object_leave(&qp->alive);
	LINT(qp_destroyed, qp);
	/* verbs/object/events.h: no further event can be taken, and those taken must be acknowledged first. */
	events_wait(base->context, "ibv_destroy_qp", "QP", &qp->async_events_taken, &qp->base.events_completed);
	/* Before the user index can refer to another QP. */
	user_cq_purge_qp(qp);
	user_index_remove(&to_user_context(base->context)->qps, qp->user_index);
	user_pd_put(qp->pd);
	user_qp_free(qp);
	return 0;
}
