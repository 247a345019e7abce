/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exported rings and doorbell records are those that the device uses. comp_mask is in and out: the requested
 * members that exist. bf.size is 0 (no BlueFlame): a WQE is always read from the ring. From then on the device polls
 * the doorbell records (progress/watch.h), so that a program can ring without a call.
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/context/doorbell_page.h"
#include "verbs/object/lint.h"
#include "verbs/object/objects.h"

static int init_obj_qp(struct ibv_qp *base, struct mlx5dv_qp *out)
{
	struct user_qp *qp = to_user_qp(base);
	uint8_t *page = doorbell_page(to_user_context(base->context));
	int error;

	if (!page)
		return errno;
	/* XRC_RECV has no doorbell record. */
	error = qp->dbrec ? -hca_qp_watch(qp->device) : 0;
	if (error)
		return error;
	out->dbrec = qp->dbrec;
	out->sq.buf = qp->sq.buffer;
	out->sq.wqe_cnt = qp->sq.wqebb_count;
	out->sq.stride = MLX5_SEND_WQE_BB;
	out->rq.buf = qp->rq.buffer;
	out->rq.wqe_cnt = qp->rq.count;
	out->rq.stride = UINT32_C(1) << qp->rq.shift;
	out->bf.reg = page + DOORBELL_SEND_OFFSET;
	out->bf.size = 0;
	/* the page cannot be mapped from a descriptor, and raw packet QPs do not exist */
	out->comp_mask = 0;
	return 0;
}

static int init_obj_cq(struct ibv_cq *base, struct mlx5dv_cq *out)
{
	struct user_cq *cq = to_user_cq(base);
	void *page = doorbell_page(to_user_context(base->context));
	int error;

	if (!page)
		return errno;
	error = -hca_cq_watch(cq->device);
	if (error)
		return error;
	queue_lock(&cq->lock);
	out->buf = cq->buffer;
	out->dbrec = cq->dbrec;
	out->cqe_cnt = cq->cqe_count;
	out->cqe_size = cq->cqe_size;
	out->cq_uar = page;
	out->cqn = hca_cq_number(cq->device);
	out->comp_mask = 0;
	/* From now on the program owns the consumer index and must handle CQEs of a dying QP. */
	cq->exported = true;
	queue_unlock(&cq->lock);
	return 0;
}

static int init_obj_srq(struct ibv_srq *base, struct mlx5dv_srq *out)
{
	struct user_srq *srq = to_user_srq(base);
	uint64_t granted = out->comp_mask & MLX5DV_SRQ_MASK_SRQN;

	queue_lock(&srq->lock);
	out->buf = srq->buffer;
	out->dbrec = srq->dbrec;
	out->stride = UINT32_C(1) << srq->entry_shift;
	out->head = srq->head;
	out->tail = srq->tail;
	queue_unlock(&srq->lock);
	if (granted)
		out->srqn = hca_srq_number(srq->device);
	out->comp_mask = granted;
	return 0;
}

static int init_obj_dm(struct ibv_dm *base, struct mlx5dv_dm *out)
{
	struct user_dm *dm = to_user_dm(base);

	out->buf = dm->addr;
	out->length = dm->length;
	/* REMOTE_VA would be an address in steering memory. */
	out->comp_mask = 0;
	return 0;
}

static int init_obj_ah(struct ibv_ah *base, struct mlx5dv_ah *out)
{
	out->av = &to_user_ah(base)->av;
	out->comp_mask = 0;
	return 0;
}

static int init_obj_pd(struct ibv_pd *base, struct mlx5dv_pd *out)
{
	out->pdn = hca_pd_number(to_user_pd(base)->device);
	out->comp_mask = 0;
	return 0;
}

static const char call[] = "mlx5dv_init_obj";

/* In the order of mlx5-formats 1.16, up to the first error. */
int softhca_mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	int error = 0;

	if (!(obj_type & (MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_RWQ | MLX5DV_OBJ_DM |
			  MLX5DV_OBJ_AH | MLX5DV_OBJ_PD)))
		return REFUSE(hca_device(0), call, EINVAL, RULE_DV_INIT_OBJ_NONE, obj_type);
	if (obj_type & (MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ))
		LINT(ring_exported);
	if (obj_type & MLX5DV_OBJ_QP)
		error = object_refused(call, NULL, obj->qp.in) ? errno : init_obj_qp(obj->qp.in, obj->qp.out);
	if (!error && obj_type & MLX5DV_OBJ_CQ)
		error = object_refused(call, NULL, obj->cq.in) ? errno : init_obj_cq(obj->cq.in, obj->cq.out);
	if (!error && obj_type & MLX5DV_OBJ_SRQ)
		error = object_refused(call, NULL, obj->srq.in) ? errno : init_obj_srq(obj->srq.in, obj->srq.out);
	if (!error && obj_type & MLX5DV_OBJ_RWQ)
		error = REFUSE(hca_device(0), call, EOPNOTSUPP, RULE_DV_INIT_OBJ_RWQ, 0);
	if (!error && obj_type & MLX5DV_OBJ_DM)
		error = object_refused(call, NULL, obj->dm.in) ? errno : init_obj_dm(obj->dm.in, obj->dm.out);
	if (!error && obj_type & MLX5DV_OBJ_AH)
		error = object_refused(call, NULL, obj->ah.in) ? errno : init_obj_ah(obj->ah.in, obj->ah.out);
	if (!error && obj_type & MLX5DV_OBJ_PD)
		error = object_refused(call, NULL, obj->pd.in) ? errno : init_obj_pd(obj->pd.in, obj->pd.out);
	return error;
}

/*
 * For programs linked against the first libmlx5, in which cq_uar is the place where the address of the page is stored.
 */
int softhca_mlx5dv_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	int error = softhca_mlx5dv_init_obj(obj, obj_type);

	if (!error && obj_type & MLX5DV_OBJ_CQ)
		obj->cq.out->cq_uar = &to_user_context(obj->cq.in->context)->doorbell_page;
	return error;
}
