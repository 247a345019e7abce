/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive WQEs. */
#include "queue/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "queue/cq.h"
#include "queue/xrc.h"

static uint16_t receive_counter(const uint32_t *dbrec)
{
	return (uint16_t)be32toh(__atomic_load_n(dbrec, __ATOMIC_ACQUIRE));
}

/* If an entry is not full, this key ends it (mlx5-formats 2.1). */
static void copy_segments(struct receive_wqe *wqe, const uint8_t *from, uint32_t room)
{
	wqe->count = 0;
	wqe->bytes = 0;
	for (uint32_t i = 0; i < room && i < RECEIVE_SEGMENTS; i++) {
		struct mlx5_wqe_data_seg *segment = &wqe->segment[i];

		memcpy(segment, from + i * sizeof(*segment), sizeof(*segment));
		if (!segment->byte_count && be32toh(segment->lkey) == MLX5_INVALID_LKEY)
			break;
		wqe->bytes += be32toh(segment->byte_count);
		wqe->count++;
	}
}

/* A program may announce more than the ring holds. */
uint32_t rq_posted(const struct hca_rq *rq)
{
	uint32_t posted;

	if (!rq->count)
		return 0;
	posted = (uint16_t)(receive_counter(rq->dbrec) - rq->consumed);
	if (!posted && rq->shadow && shadow_fetch(rq->shadow))
		posted = (uint16_t)(receive_counter(rq->dbrec) - rq->consumed);
	return posted > rq->count ? rq->count : posted;
}

bool rq_take(struct hca_rq *rq, struct receive_wqe *wqe)
{
	if (!rq_posted(rq))
		return false;
	wqe->counter = rq->consumed;
	copy_segments(wqe, rq->buffer + ((size_t)(rq->consumed & (rq->count - 1)) << rq->shift),
		      rq_segments(rq->shift));
	rq->consumed++;
	return true;
}

static uint32_t srq_posted(const struct hca_srq *srq)
{
	return (uint16_t)(receive_counter(srq->dbrec) - srq->consumed);
}

/* Fetches entries posted since the copy was made before it returns true. */
static bool is_below_limit(struct hca_srq *srq)
{
	if (srq_posted(srq) >= srq->limit)
		return false;
	return !(srq->shadow && shadow_fetch(srq->shadow)) || srq_posted(srq) < srq->limit;
}

/* ibv_modify_srq(3): the event disarms itself. */
static void check_limit(struct hca_srq *srq)
{
	if (srq->limit && is_below_limit(srq)) {
		srq->limit = 0;
		hca_raise(srq->context, &srq->limit_reached);
	}
}

static const uint8_t *srq_ring_entry(const struct hca_srq *srq, uint32_t index)
{
	return srq->buffer + ((size_t)index << srq->entry_shift);
}

bool srq_take(struct hca_srq *srq, struct receive_wqe *wqe)
{
	struct mlx5_wqe_srq_next_seg link;
	size_t header;

	queue_lock(&srq->lock);
	if (!srq_posted(srq) && !(srq->shadow && shadow_fetch(srq->shadow))) {
		queue_unlock(&srq->lock);
		return false;
	}
	wqe->counter = (uint16_t)srq->next;
	memcpy(&link, srq_ring_entry(srq, srq->next), sizeof(link));
	header = srq->basic ? 0 : sizeof(link);
	copy_segments(wqe, srq_ring_entry(srq, srq->next) + header,
		      ((1u << srq->entry_shift) - header) / sizeof(struct mlx5_wqe_data_seg));
	/* The program may write any index: it must not lead out of the ring. */
	srq->next = (srq->cyclic ? srq->next + 1 : be16toh(link.next_wqe_index)) & (srq->entry_count - 1);
	srq->consumed++;
	check_limit(srq);
	queue_unlock(&srq->lock);
	return true;
}

/* IBTA A14: a request for an XRC SRQ has its domain, CQ and keys. It may not use the windows of a QP. */
static void init_xrc(struct hca_srq *srq, const struct hca_srq_attr *attr)
{
	srq->xrcd = attr->xrcd;
	srq->domain = attr->xrcd->domain;
	srq->cq = attr->cq;
	srq->user_index = attr->user_index;
	reference_get(&srq->xrcd->references);
	reference_get(&srq->cq->references);
}

/*
 * Ends an XRC SRQ that packets can no longer name: unfinished messages return their receives. Pending answers find no
 * CQ for signature errors.
 */
static void end_xrc(struct hca_srq *srq)
{
	epoch_synchronize();
	xrc_forget_srq(srq->domain, srq);
	/* A thread that looked up the CQ may still write to it. */
	epoch_synchronize();
	reference_put(&srq->cq->references);
	reference_put(&srq->xrcd->references);
}

static void free_srq(struct hca_srq *srq)
{
	queue_lock_destroy(&srq->lock);
	if (srq->shadow)
		shadow_free(srq->shadow);
	free(srq->shadow);
	free(srq);
}

static int init_shadow(struct hca_srq *srq, const struct hca_srq_attr *attr)
{
	srq->shadow = calloc(1, sizeof(*srq->shadow));
	if (!srq->shadow || shadow_init(srq->shadow, attr->buffer, attr->dbrec, attr->entry_count, attr->entry_shift))
		return -ENOMEM;
	srq->shadow->linked = !attr->cyclic;
	srq->buffer = srq->shadow->copy;
	srq->dbrec = &srq->shadow->index;
	return 0;
}

int hca_srq_create(struct hca_pd *pd, const struct hca_srq_attr *attr, struct hca_srq **out)
{
	struct hca *hca = pd->context->hca;
	struct hca_srq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return -ENOMEM;
	if (id_table_alloc(&hca->srqs, &srq->number)) {
		free(srq);
		return -ENOMEM;
	}
	queue_lock_init(&srq->lock, LOCK_LEVEL_SRQ, false);
	srq->pd = pd;
	srq->context = attr->context ? attr->context : pd->context;
	srq->buffer = attr->buffer;
	srq->entry_count = attr->entry_count;
	srq->entry_shift = attr->entry_shift;
	srq->dbrec = attr->dbrec;
	srq->cyclic = attr->cyclic;
	srq->basic = attr->basic;
	if (attr->in_umem && init_shadow(srq, attr)) {
		id_table_release(&hca->srqs, srq->number);
		free_srq(srq);
		return -ENOMEM;
	}
	srq->limit = attr->limit;
	srq->limit_reached.type = IBV_EVENT_SRQ_LIMIT_REACHED;
	srq->limit_reached.object = attr->cookie;
	reference_get(&pd->references);
	reference_get(&srq->context->references);
	if (attr->xrcd)
		init_xrc(srq, attr);
	id_table_publish(&hca->srqs, srq->number, srq);
	*out = srq;
	return 0;
}

int hca_srq_destroy(struct hca_srq *srq)
{
	struct hca *hca = srq->pd->context->hca;

	if (reference_count(&srq->references))
		return -EBUSY;
	id_table_unpublish(&hca->srqs, srq->number);
	if (srq->xrcd)
		end_xrc(srq);
	event_source_purge(srq->context->async, &srq->limit_reached);
	id_table_release(&hca->srqs, srq->number);
	reference_put(&srq->pd->references);
	reference_put(&srq->context->references);
	free_srq(srq);
	return 0;
}

struct hca_srq *hca_srq_find(const struct hca_context *context, uint32_t number)
{
	struct hca_srq *srq;

	epoch_enter();
	srq = id_table_find(&context->hca->srqs, number);
	epoch_leave();
	return srq && srq->context == context ? srq : NULL;
}

uint32_t hca_srq_number(const struct hca_srq *srq)
{
	return srq->number;
}

int hca_srq_set_limit(struct hca_srq *srq, uint32_t limit)
{
	queue_lock(&srq->lock);
	srq->limit = limit;
	check_limit(srq);
	queue_unlock(&srq->lock);
	return 0;
}

uint32_t hca_srq_entries(const struct hca_srq *srq)
{
	return srq->entry_count;
}

uint32_t hca_srq_limit(struct hca_srq *srq)
{
	uint32_t limit;

	queue_lock(&srq->lock);
	limit = srq->limit;
	queue_unlock(&srq->lock);
	return limit;
}

int hca_srq_resize(struct hca_srq *srq, void *buffer, uint32_t entry_count,
		   void (*fill)(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first), void *argument)
{
	uint32_t posted, first = 0;
	int error = 0;

	queue_lock(&srq->lock);
	posted = srq_posted(srq);
	if (posted >= entry_count) {
		error = -EINVAL;
	} else {
		fill(argument, srq->next, posted, &first);
		srq->buffer = buffer;
		srq->entry_count = entry_count;
		srq->next = first;
		srq->consumed = (uint16_t)(receive_counter(srq->dbrec) - posted);
	}
	queue_unlock(&srq->lock);
	return error;
}
