/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device owns the producer side of the ring. The driver owns the memory of ring and doorbell record and frees it
 * after the device's CQ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/cqe.h"
#include "verbs/object/events.h"
#include "verbs/object/lint.h"
#include "verbs/object/ops.h"

enum {
	KNOWN_COMP_MASK = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD,
	KNOWN_FLAGS = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	KNOWN_DV_COMP_MASK = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |
			     MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
};

struct request {
	const char *call;
	struct hca *hca;
	struct ibv_context *context;
	const struct ibv_cq_init_attr_ex *attr;
	const struct mlx5dv_cq_init_attr *dv; /* or NULL */
	uint32_t flags;                       /* enum ibv_create_cq_attr_flags */
	struct user_pd *pd;                   /* parent domain or NULL */
	uint32_t cqe_size;
};

/* ibv_create_cq_ex(3): EOPNOTSUPP for fields of a completion that the device cannot deliver, otherwise EINVAL. */
static int cq_check_attributes(struct request *request)
{
	const struct ibv_cq_init_attr_ex *attr = request->attr;

	if (attr->cqe < 1 || attr->cqe > LIMIT_MAX_CQE)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_CQE, (int32_t)attr->cqe, LIMIT_MAX_CQE);
	if (attr->comp_mask & ~(uint32_t)KNOWN_COMP_MASK)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_COMP_MASK, attr->comp_mask, KNOWN_COMP_MASK);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		request->flags = attr->flags;
	if (request->flags & ~(uint32_t)KNOWN_FLAGS)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_FLAGS, request->flags, KNOWN_FLAGS);
	if (attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS)
		return REFUSE(request->hca, request->call, EOPNOTSUPP, RULE_CQ_WC_FLAGS, attr->wc_flags,
			      IBV_CREATE_CQ_SUP_WC_FLAGS);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		if (optional_refused(request->call, request->context, attr->parent_domain))
			return errno;
		request->pd = to_user_pd(attr->parent_domain);
		if (!request->pd || !request->pd->parent)
			return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_PARENT_DOMAIN, 0);
	}
	if (attr->comp_vector >= LIMIT_COMP_VECTORS)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_COMP_VECTOR, (int32_t)attr->comp_vector,
			      LIMIT_COMP_VECTORS);
	/* The kernel of a real adapter looks up the channel's descriptor in the file of the context. */
	if (attr->channel && object_unknown(request->call, attr->channel))
		return errno;
	if (attr->channel &&
	    to_user_context(attr->channel->context)->handles != to_user_context(request->context)->handles)
		return REFUSE(request->hca, request->call, EBADF, RULE_CQ_CHANNEL, attr->channel->fd);
	return 0;
}

/* MLX5_CQE_SIZE is read at each creation, as in the real library. */
static int cq_choose_cqe_size(struct request *request)
{
	const char *variable = variable_get(VARIABLE_MLX5_CQE_SIZE);

	request->cqe_size = 64;
	if (request->dv && request->dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)
		request->cqe_size = request->dv->cqe_size;
	else if (variable)
		request->cqe_size = strtoul(variable, NULL, 10);
	if (request->cqe_size != 64 && request->cqe_size != 128)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_CQE_SIZE, request->cqe_size);
	return 0;
}

static int cq_check_dv_attributes(struct request *request)
{
	const struct mlx5dv_cq_init_attr *dv = request->dv;
	uint32_t flags;

	if (dv->comp_mask & ~(uint64_t)KNOWN_DV_COMP_MASK)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_DV_COMP_MASK, dv->comp_mask,
			      KNOWN_DV_COMP_MASK);
	/*
	 * mlx5dv_create_cq(3) says "A bitwise OR", but the kernel accepts one bit, which programs expect. Compressing
	 * is optional, and this device never does it.
	 */
	if (dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE &&
	    (dv->cqe_comp_res_format & ~CQE_FORMATS || __builtin_popcount(dv->cqe_comp_res_format) != 1))
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_COMPRESSION, dv->cqe_comp_res_format,
			      CQE_FORMATS);
	flags = dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS ? dv->flags : 0;
	if (flags & ~(uint32_t)MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_DV_FLAGS, flags,
			      MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD);
	if (flags & MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD && request->cqe_size != 128)
		return REFUSE(request->hca, request->call, EINVAL, RULE_CQ_PADDING, request->cqe_size);
	return 0;
}

static int cq_check(struct request *request)
{
	int error = cq_check_attributes(request);

	if (!error)
		error = cq_choose_cqe_size(request);
	if (!error && request->dv)
		error = cq_check_dv_attributes(request);
	return error;
}

/* Returns an errno value. */
static int cq_alloc(struct user_cq *cq, const struct request *request)
{
	uint32_t count = queue_entries(request->attr->cqe + 1);

	cq->pd = request->pd;
	cq->cqe_size = request->cqe_size;
	cq_set_ring(cq, cq_ring_alloc(cq->pd, count, cq->cqe_size), count);
	if (cq->buffer)
		cq->dbrec = dbrec_alloc(cq->pd);
	if (!cq->buffer || !cq->dbrec)
		return REFUSE(request->hca, request->call, errno ? errno : ENOMEM, RULE_QUEUE_MEMORY,
			      (uint64_t)cq->cqe_count * cq->cqe_size);
	/* Bits that no arm word has, so that even a first arm word of 0 is a change (progress/watch.h). */
	cq->dbrec[1] = htobe32(UINT32_C(0xc0000000));
	return 0;
}

static void cq_free(struct user_cq *cq)
{
	if (cq->dbrec)
		dbrec_free(cq->pd, cq->dbrec);
	if (cq->buffer)
		cq_ring_free(cq->pd, cq->buffer, cq->cqe_count, cq->cqe_size);
	free(cq);
}

static int cq_create_in_device(struct user_cq *cq, struct ibv_context *context, const struct request *request)
{
	struct ibv_comp_channel *channel = request->attr->channel;
	const struct hca_cq_attr attr = {
		.buffer = cq->buffer,
		.cqe_count = cq->cqe_count,
		.cqe_size = cq->cqe_size,
		.dbrec = cq->dbrec,
		.channel = channel ? &to_user_comp_channel(channel)->events : NULL,
		.cookie = cq,
		.timestamps = request->attr->wc_flags &
			      (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK),
		.ignore_overrun = request->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};

	return -hca_cq_create(to_user_context(context)->device, &attr, &cq->device);
}

/* A channel cannot be destroyed while CQs refer to it (ibv_create_comp_channel(3)). */
static void channel_add_references(struct ibv_comp_channel *channel, int change)
{
	if (channel)
		__atomic_add_fetch(&channel->refcnt, change, __ATOMIC_RELEASE);
}

static void cq_publish(struct user_cq *cq, struct ibv_context *context, const struct request *request)
{
	const struct ibv_cq_init_attr_ex *attr = request->attr;
	bool single_threaded = request->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;

	queue_lock_init(&cq->lock, LOCK_LEVEL_USER_CQ, single_threaded || queue_single_threaded(cq->pd));
	cq->base.context = context;
	cq->base.channel = attr->channel;
	cq->base.cq_context = attr->cq_context;
	cq->base.handle = hca_cq_number(cq->device);
	cq->base.cqe = cq->cqe_count - 1;
	pthread_mutex_init(&cq->base.mutex, NULL);
	pthread_cond_init(&cq->base.cond, NULL);
	if (cq->extended)
		cq_poll_ex_fill(cq, attr->wc_flags);
	channel_add_references(attr->channel, 1);
	object_enter(&cq->base, &cq->alive, context);
}

struct ibv_cq_ex *user_cq_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				 struct mlx5dv_cq_init_attr *dv, bool extended)
{
	struct request request = {
		.call = extended ? "ibv_create_cq_ex" : "ibv_create_cq",
		.hca = hca_of_context(context),
		.context = context,
		.attr = attr,
		.dv = dv,
	};
	struct user_cq *cq;
	int error;

	if (dv)
		request.call = "mlx5dv_create_cq";
	error = cq_check(&request);
	if (error)
		goto fail;
	error = ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto fail;
	cq->extended = extended;
	error = cq_alloc(cq, &request);
	if (!error)
		error = cq_create_in_device(cq, context, &request);
	if (error) {
		cq_free(cq);
		goto fail;
	}
	cq_publish(cq, context, &request);
	return &cq->ex;
fail:
	errno = error;
	return NULL;
}

struct ibv_cq *softhca_ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_cq_ex *cq = user_cq_create(context, &attr, NULL, false);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

struct ibv_cq_ex *softhca_ibv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	return user_cq_create(context, attr, NULL, true);
}

int softhca_ibv_destroy_cq(struct ibv_cq *base)
{
	struct user_cq *cq = to_user_cq(base);

	if (object_refused("ibv_destroy_cq", NULL, base))
		return errno;
	if (hca_cq_destroy(cq->device))
		return refuse_ignorable(hca_of_context(base->context), "ibv_destroy_cq", EBUSY, RULE_CQ_IN_USE,
					FIGURES(base->handle));
	object_leave(&cq->alive);
	LINT(cq_destroyed, cq);
	/* ibv_get_cq_event(3): waits until all events that the program took are acknowledged. */
	events_wait(base->context, "ibv_destroy_cq", "CQ", &cq->comp_events_taken, &base->comp_events_completed);
	events_wait(base->context, "ibv_destroy_cq", "CQ", &cq->async_events_taken, &base->async_events_completed);
	channel_add_references(base->channel, -1);
	pthread_cond_destroy(&base->cond);
	pthread_mutex_destroy(&base->mutex);
	queue_lock_destroy(&cq->lock);
	cq_free(cq);
	return 0;
}
