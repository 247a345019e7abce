/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns if a receive buffer is read before the completion is polled. Pages entirely inside the buffer are protected
 * (observe/page_guard.h) until then; the guard records reads, and the next call reports them.
 *
 * A page of two receives or two regions is not protected, because the program may read data that one of the receives
 * has delivered.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lint/state.h"

#define MOST_POSTED UINT16_MAX

static bool is_wanted(void)
{
	return lint_wanted & misuse_bit(RULE_RECEIVE_READ_EARLY);
}

static uint64_t page_bytes(void)
{
	static uint64_t bytes;

	if (!bytes)
		bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	return bytes;
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static uint64_t first_page_of(const struct user_mr *mr)
{
	return (uintptr_t)mr->base.addr / page_bytes();
}

static uint64_t end_page_of(const struct user_mr *mr)
{
	return ((uintptr_t)mr->base.addr + mr->base.length + page_bytes() - 1) / page_bytes();
}

/* Marks regions that share pages with @mr as not watched, because a receive posted to one would count for the other. */
static void look_for_others(struct user_mr *mr)
{
	for (int i = 0; i < LINT_BUCKETS; i++)
		for (struct user_mr *other = lint.mrs[i]; other; other = other->lint_next)
			if (other != mr && other->kind == mr->kind && first_page_of(other) < end_page_of(mr) &&
			    first_page_of(mr) < end_page_of(other))
				other->lint_shared = mr->lint_shared = true;
	if (mr->lint_shared)
		page_guard_open_memory((uintptr_t)mr->base.addr, mr->base.length);
}

void lint_receive_region_registered(struct user_mr *mr)
{
	if (is_wanted() && mr->kind == MR_MEMORY && !mr->imported && mr->base.length)
		look_for_others(mr);
	else
		mr->lint_shared = true;
}

void lint_receive_region_gone(struct user_mr *mr)
{
	if (mr->lint_receives)
		page_guard_open_memory((uintptr_t)mr->base.addr, mr->base.length);
	free(mr->lint_receives);
	mr->lint_receives = NULL;
}

void lint_mr_changed(struct user_mr *mr)
{
	queue_lock(&lint.lock);
	/* The region's previous range is unknown now. */
	if (mr->lint_receives)
		page_guard_stop();
	free(mr->lint_receives);
	mr->lint_receives = NULL;
	mr->lint_shared = false;
	lint_receive_region_registered(mr);
	queue_unlock(&lint.lock);
}

/* ---- one receive ------------------------------------------------------------------------------------------------ */

/* Finds the pages of @mr that @sge touches, counted from its first page. Returns false if @mr is not watched. */
static bool find_pages(struct user_mr *mr, const struct ibv_sge *sge, struct lint_buffer *buffer)
{
	uint64_t offset = sge->addr - (mr ? mr->start : 0), start;

	/* Pages that the device may not write stay as they are: unprotecting them would permit the program to write. */
	if (!mr || mr->lint_shared || !(mr->access & IBV_ACCESS_LOCAL_WRITE) || offset > mr->base.length ||
	    sge->length > mr->base.length - offset)
		return false;
	if (!mr->lint_receives)
		mr->lint_receives = calloc(end_page_of(mr) - first_page_of(mr), sizeof(*mr->lint_receives));
	start = (uintptr_t)mr->base.addr + offset;
	*buffer = (struct lint_buffer){
		.lkey = sge->lkey,
		.range = -1,
		.first = start / page_bytes() - first_page_of(mr),
		.end = (start + sge->length - 1) / page_bytes() + 1 - first_page_of(mr),
	};
	return mr->lint_receives;
}

/* Counts the receive. Returns true if these pages have no other. */
static bool count_pages(struct user_mr *mr, const struct lint_buffer *buffer)
{
	bool alone = true;

	for (uint64_t page = buffer->first; page < buffer->end; page++) {
		if (mr->lint_receives[page] < MOST_POSTED)
			mr->lint_receives[page]++;
		alone = alone && mr->lint_receives[page] == 1;
	}
	return alone;
}

static void buffer_watch(struct lint_receives *receives, uint32_t number, uint16_t counter, const struct ibv_sge *sge)
{
	struct lint_receive *receive = &receives->entry[number];
	struct lint_buffer *buffer = &receive->buffer[receive->buffers];
	struct user_mr *mr = lint_mr_find(sge->lkey);
	uint64_t start;

	if (!sge->length || !find_pages(mr, sge, buffer))
		return;
	start = (uintptr_t)mr->base.addr + (sge->addr - mr->start);
	if (!count_pages(mr, buffer))
		page_guard_open_memory(start, sge->length);
	else
		buffer->range = page_guard_close(start, sge->length, receives, number, counter);
	receive->buffers++;
}

/* Stops watching the region of @sge, because the end of this receive will go unnoticed. */
static void region_stop_watching(const struct ibv_sge *sge)
{
	struct user_mr *mr = lint_mr_find(sge->lkey);

	if (!mr)
		return;
	mr->lint_shared = true;
	page_guard_open_memory((uintptr_t)mr->base.addr, mr->base.length);
}

static void receive_note(struct lint_receives *receives, uint32_t number, uint16_t counter,
			 const struct ibv_recv_wr *wr)
{
	struct lint_receive *receive = &receives->entry[number];

	receive->wr_id = wr->wr_id;
	for (int i = 0; i < wr->num_sge; i++)
		if (receive->buffers < LINT_PIECES)
			buffer_watch(receives, number, counter, &wr->sg_list[i]);
		else
			region_stop_watching(&wr->sg_list[i]);
}

/* If the queue pair cannot receive any more, its buffers may be read. */
static bool receives_go_on(const struct lint_receives *receives)
{
	enum ibv_qp_state state;

	if (!receives->qp)
		return true;
	state = hca_qp_state(receives->qp->device);
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

static void receive_warn(struct lint_receives *receives, uint64_t wr_id, uint64_t address)
{
	struct ibv_context *context = receives->qp ? receives->qp->base.context : receives->srq->base.context;
	const struct explain_subject subject = {
		.call = receives->qp ? "ibv_post_recv" : "ibv_post_srq_recv",
		.qpn = receives->qp ? receives->qp->base.qp_num : 0,
		.wr_id = wr_id,
	};
	uint64_t *warned = receives->qp ? &receives->qp->lint->warned : &receives->warned;

	if (receives_go_on(receives))
		lint_warn(hca_of_context(context), &subject, warned, RULE_RECEIVE_READ_EARLY, FIGURES(address));
}

/* Ends receive @number. @polled: the program gets its completion now. */
static void receive_forget(struct lint_receives *receives, uint32_t number, bool polled)
{
	struct lint_receive *receive = &receives->entry[number];

	for (uint32_t i = 0; i < receive->buffers; i++) {
		const struct lint_buffer *buffer = &receive->buffer[i];
		struct user_mr *mr = lint_mr_find(buffer->lkey);
		uint64_t read_at = buffer->range < 0 ? 0 : page_guard_open(buffer->range);

		if (read_at && polled)
			receive_warn(receives, receive->wr_id, read_at);
		for (uint64_t page = buffer->first; mr && mr->lint_receives && page < buffer->end; page++)
			mr->lint_receives[page] -= mr->lint_receives[page] && mr->lint_receives[page] < MOST_POSTED;
	}
	receive->buffers = 0;
}

void lint_reads_tell(void)
{
	struct page_guard_read read;

	while (__atomic_load_n(&page_guard_reads, __ATOMIC_ACQUIRE) && page_guard_take_read(&read)) {
		struct lint_receives *receives = read.owner;

		receive_warn(receives, receives->entry[read.number].wr_id, read.address);
	}
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------ */

void lint_receives_complete(struct lint_qp *state)
{
	struct lint_receives *receives = &state->receives;
	const struct receive_queue *rq = &state->qp->rq;
	uint32_t tail = __atomic_load_n(&rq->tail, __ATOMIC_ACQUIRE);

	while (receives->first != receives->end && (int32_t)(tail - receives->first) > 0)
		receive_forget(receives, receives->first++ & (rq->count - 1), true);
}

static void receives_forget_all(struct lint_qp *state)
{
	struct lint_receives *receives = &state->receives;

	while (receives->first != receives->end)
		receive_forget(receives, receives->first++ & (state->qp->rq.count - 1), false);
}

void lint_receive_posting(struct user_qp *qp, uint32_t number, const struct ibv_recv_wr *wr)
{
	struct lint_qp *state = qp->lint;

	queue_lock(&lint.lock);
	lint_memory_written(wr->sg_list, wr->num_sge);
	if (!is_wanted()) {
		queue_unlock(&lint.lock);
		return;
	}
	if (state && !state->receives.entry)
		state->receives =
			(struct lint_receives){.entry = calloc(qp->rq.count, sizeof(struct lint_receive)), .qp = qp};
	if (!state || !state->receives.entry) {
		for (int i = 0; i < wr->num_sge; i++)
			region_stop_watching(&wr->sg_list[i]);
	} else {
		lint_receives_complete(state);
		/* The queue pair was reset. */
		if (number != state->receives.end)
			receives_forget_all(state);
		if (state->receives.first == state->receives.end)
			state->receives.first = number;
		state->receives.end = number + 1;
		receive_note(&state->receives, number & (qp->rq.count - 1), (uint16_t)number, wr);
	}
	queue_unlock(&lint.lock);
}

void lint_qp_entered(struct user_qp *qp, enum ibv_qp_state state)
{
	if (!qp->lint || (state != IBV_QPS_RESET && state != IBV_QPS_ERR))
		return;
	queue_lock(&lint.lock);
	receives_forget_all(qp->lint);
	queue_unlock(&lint.lock);
}

void lint_receives_end(struct lint_qp *state)
{
	receives_forget_all(state);
	free(state->receives.entry);
}

/* ---- shared receive queues --------------------------------------------------------------------------------------- */

static bool srq_receives_grow(struct user_srq *srq, uint32_t entries)
{
	struct lint_receives *receives = srq->lint.receives;
	struct lint_receive *more;

	if (!receives)
		receives = srq->lint.receives = calloc(1, sizeof(*receives));
	if (!receives || entries <= receives->end)
		return receives;
	receives->srq = srq;
	more = realloc(receives->entry, entries * sizeof(*more));
	if (!more)
		return false;
	memset(more + receives->end, 0, (entries - receives->end) * sizeof(*more));
	receives->entry = more;
	receives->end = entries;
	return true;
}

void lint_srq_receive_posting(struct user_srq *srq, uint32_t index, const struct ibv_recv_wr *wr)
{
	queue_lock(&lint.lock);
	lint_memory_written(wr->sg_list, wr->num_sge);
	if (!is_wanted()) {
		queue_unlock(&lint.lock);
		return;
	}
	if (srq_receives_grow(srq, srq->entry_count)) {
		receive_forget(srq->lint.receives, index, false);
		receive_note(srq->lint.receives, index, (uint16_t)index, wr);
	} else {
		for (int i = 0; i < wr->num_sge; i++)
			region_stop_watching(&wr->sg_list[i]);
	}
	queue_unlock(&lint.lock);
}

void lint_srq_receive_completed(struct user_srq *srq, uint32_t index)
{
	queue_lock(&lint.lock);
	if (srq->lint.receives && index < srq->lint.receives->end)
		receive_forget(srq->lint.receives, index, true);
	queue_unlock(&lint.lock);
}

void lint_srq_destroyed(struct user_srq *srq)
{
	struct lint_receives *receives = srq->lint.receives;

	if (!receives)
		return;
	queue_lock(&lint.lock);
	for (uint32_t i = 0; i < receives->end; i++)
		receive_forget(receives, i, false);
	queue_unlock(&lint.lock);
	free(receives->entry);
	free(receives);
	srq->lint.receives = NULL;
}

/* Stops watching, because the program posts and polls in the rings unnoticed. */
void lint_ring_exported(void)
{
	page_guard_stop();
}

/* ---- WRITEs ----------------------------------------------------------------------------------------------------- */

void lint_write_was_read(struct hca *hca, uint32_t qp_num, uint64_t address, uint64_t start, uint64_t length)
{
	const struct explain_subject subject = {.call = "RDMA WRITE", .qpn = qp_num};
	struct lint_qp *state;

	queue_lock(&lint.lock);
	state = lint_qp_find(qp_num);
	lint_warn(hca, &subject, state ? &state->warned : NULL, RULE_WRITE_READ_EARLY, FIGURES(address, start, length));
	queue_unlock(&lint.lock);
}
