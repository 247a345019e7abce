/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues of the device. */
#include "queue/cq_write.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/mlx5dv.h>

#include "core/epoch.h"
#include "progress/program_memory.h"
#include "mkey/signature_report.h"
#include "hca/hca.h"
#include "observe/page_guard.h"
#include "observe/timeline.h"

#define ARM_SOLICITED (1u << 24)
#define ARM_SN(word) ((word) >> 28 & 3)
#define SHORT_INDICES (UINT32_C(1) << 16)

static void set_armed(struct hca_cq *cq, bool armed)
{
	__atomic_store_n(&cq->armed, armed, __ATOMIC_RELAXED);
	cq->attentive = armed || cq->ring_exported;
}

/* A CQE of a message, for threads that poll until one has been received. Two at a time may count as one. */
static void count_received(struct hca *hca)
{
	__atomic_store_n(&hca->ring_receives, hca->ring_receives + 1, __ATOMIC_RELEASE);
}

static void cq_fire(struct hca_cq *cq)
{
	set_armed(cq, false);
	cq->fired = true;
	cq->fired_sn = cq->armed_sn;
	cq->notified = cq->producer_index;
	cq->waiting = 0;
	if (cq->moderate_period_us)
		timer_disarm(&cq->context->hca->timers, &cq->moderate_timer);
	if (cq->channel)
		event_queue_raise(cq->channel, &cq->completion);
}

static void cq_moderate_expired(struct timer *timer)
{
	struct hca_cq *cq = (struct hca_cq *)((char *)timer - offsetof(struct hca_cq, moderate_timer));

	queue_lock(&cq->lock);
	if (cq->armed && cq->waiting)
		cq_fire(cq);
	queue_unlock(&cq->lock);
}

/* ibv_modify_cq(3), moderation: waits for cq_count completions, but no longer than cq_period. */
static void event_due(struct hca_cq *cq)
{
	struct timers *timers = &cq->context->hca->timers;

	cq->waiting++;
	if (cq->waiting >= cq->moderate_count || !cq->moderate_period_us) {
		cq_fire(cq);
		return;
	}
	if (cq->waiting == 1 &&
	    timer_arm(timers, &cq->moderate_timer, clock_now_ns() + cq->moderate_period_us * UINT64_C(1000)))
		cq_fire(cq);
}

static bool cqe_wakes(const struct hca_cq *cq, uint8_t op_own)
{
	uint8_t opcode = op_own >> 4;

	return !cq->armed_solicited || op_own & 2 || opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
}

/* ---- CQs in memory that may be unmapped ------------------------------------------------------------------------- */

struct umem_cq {
	uint8_t *buffer; /* the program's ring */
	uint32_t *dbrec;
	uint32_t copied_dbrec[2];
	bool collapsed; /* entry 0 has the newest CQE */
	bool gone;
	bool begun; /* program_rings_begin() was called */
};

static int umem_init(struct hca_cq *cq, const struct hca_cq_attr *attr)
{
	size_t bytes = (size_t)attr->cqe_count * attr->cqe_size;

	cq->umem = calloc(1, sizeof(*cq->umem));
	cq->buffer = aligned_alloc(64, bytes);
	if (!cq->umem || !cq->buffer)
		return -ENOMEM;
	memset(cq->buffer, 0, bytes);
	program_rings_begin();
	cq->umem->begun = true;
	cq->umem->buffer = attr->buffer;
	cq->umem->dbrec = attr->dbrec;
	cq->umem->collapsed = attr->collapsed;
	cq->dbrec = cq->umem->copied_dbrec;
	cq->attentive = true;
	/* The program reads the ring, with signature errors. */
	cq->ring_exported = true;
	return 0;
}

static void umem_free(struct hca_cq *cq)
{
	if (!cq->umem)
		return;
	if (cq->umem->begun)
		program_rings_end();
	free(cq->buffer);
	free(cq->umem);
}

/* Ends a CQ whose ring the program has unmapped. Later CQEs are lost. */
static void umem_lost(struct hca_cq *cq)
{
	if (cq->umem->gone)
		return;
	cq->umem->gone = true;
	cq->ignore_overrun = false;
	cq->dbrec[0] = htobe32(cq->producer_index - cq->cqe_count);
	EXPLAIN(cq->context->hca, &(struct explain_subject){0}, RULE_UMEM_CQ_GONE, cq->number,
		(uintptr_t)cq->umem->buffer);
}

/* op_own is last, because it hands the CQE over. */
static void umem_copy_out(struct hca_cq *cq)
{
	const struct mlx5_cqe64 *cqe = cq_cqe(cq, cq->producer_index - 1);
	bool wide = (cqe->op_own & 0xc) == MLX5_INLINE_SCATTER_64;
	const uint8_t *from = (const uint8_t *)(wide ? cqe - 1 : cqe), *end = &cqe->op_own;
	size_t at = (size_t)(from - cq->buffer);
	uint8_t *to = cq->umem->buffer + (cq->umem->collapsed ? at % cq->cqe_size : at);

	if (program_ring_write(to, from, (size_t)(end - from)))
		return umem_lost(cq);
	/* System calls do not order stores. */
	order_before_stores();
	if (program_ring_write(to + (end - from), end, 1))
		umem_lost(cq);
}

static void umem_read_consumer(struct hca_cq *cq)
{
	if (!cq->umem->gone && program_ring_read(&cq->dbrec[0], &cq->umem->dbrec[0], sizeof(cq->dbrec[0])))
		umem_lost(cq);
}

void hca_cq_query(struct hca_cq *cq, struct hca_cq_state *state)
{
	queue_lock(&cq->lock);
	if (cq->umem)
		umem_read_consumer(cq);
	*state = (struct hca_cq_state){
		.producer = cq->producer_index & CQ_INDEX_MASK,
		.consumer = be32toh(__atomic_load_n(&cq->dbrec[0], __ATOMIC_ACQUIRE)) & CQ_INDEX_MASK,
		.overrun = cq->overrun,
		.armed = cq->armed,
		.armed_solicited = cq->armed_solicited,
		.event_waits = cq->waiting != 0,
	};
	queue_unlock(&cq->lock);
}

static void cqe_fill_error(struct mlx5_cqe64 *cqe, const struct completion *completion)
{
	struct mlx5_err_cqe *error = (struct mlx5_err_cqe *)cqe;

	memset(error->rsvd1, 0, sizeof(error->rsvd1));
	error->syndrome = completion->syndrome;
	error->vendor_err_synd = completion->vendor_syndrome;
}

/* mlx5-formats 3.5: this CQE has another layout. */
struct signature_cqe {
	uint8_t reserved0[16];
	__be32 expected_upper, found_upper;
	__be32 expected_lower, found_lower;
	__be16 syndrome;
	uint8_t type; /* 0: block signature, 1: transaction signature */
	uint8_t domain;
	__be32 key;
	__be64 offset;
	uint8_t reserved48[8];
	__be32 qpn;
	uint8_t reserved60[3];
	uint8_t op_own;
};

static void cqe_fill_signature(struct mlx5_cqe64 *cqe, const struct completion *completion)
{
	const struct signature_error *error = completion->signature;
	const struct signature_cqe filled = {
		.expected_upper = htobe32((uint32_t)(error->expected >> 32)),
		.found_upper = htobe32((uint32_t)(error->found >> 32)),
		.expected_lower = htobe32((uint32_t)error->expected),
		.found_lower = htobe32((uint32_t)error->found),
		.syndrome = htobe16(error->syndrome),
		.type = error->transaction,
		.domain = error->memory,
		.key = htobe32(error->key),
		.offset = htobe64(error->offset),
		.qpn = htobe32(completion->qpn),
	};

	memcpy(cqe, &filled, offsetof(struct signature_cqe, op_own));
}

/* Returns true if one entry was left before the last CQE, with @consumer in the record. */
static bool was_nearly_full(const struct hca_cq *cq, uint32_t consumer)
{
	return cq->one_left_at == cq->producer_index - 1 && cq->one_left_consumer == consumer;
}

/*
 * As cq_outstanding(), for any program. A driver writes 24 bits of its index (mlx5-formats 3.1), some programs 16 bits,
 * or the index modulo the ring size (docs/inside/decisions.md, Completion queues). A record that implies more CQEs than
 * entries does not have 24 bits: not below the size, it has 16; below, all forms are equal modulo the size. Only a full
 * ring is ambiguous: one CQE ago it had one entry left, with the same record. In all other cases the record has moved
 * back, which that of a full ring never does.
 */
static uint32_t cq_unread(const struct hca_cq *cq)
{
	uint32_t last = cq->cqe_count - 1, outstanding = cq_outstanding(cq);
	uint32_t consumer = (cq->producer_index - outstanding) & CQ_INDEX_MASK;

	if (outstanding <= last)
		return outstanding;
	if (consumer > last)
		return cq->cqe_count <= SHORT_INDICES / 2 ? outstanding % SHORT_INDICES : outstanding;
	outstanding &= last;
	return outstanding || !was_nearly_full(cq, consumer) ? outstanding : cq->cqe_count;
}

static bool has_room(struct hca_cq *cq)
{
	uint32_t outstanding = cq_unread(cq);

	if (outstanding == cq->cqe_count - 1) {
		cq->one_left_at = cq->producer_index;
		cq->one_left_consumer = (cq->producer_index - cq_outstanding(cq)) & CQ_INDEX_MASK;
	}
	return outstanding < cq->cqe_count;
}

bool cq_find_room(struct hca_cq *cq)
{
	if (cq->umem)
		umem_read_consumer(cq);
	if (has_room(cq) && !(cq->umem && cq->umem->gone))
		return true;
	if (!cq->overrun) {
		cq->overrun = true;
		EXPLAIN(cq->context->hca, &(struct explain_subject){0}, RULE_CQ_OVERRUN, cq->number, cq->cqe_count);
		hca_raise(cq->context, &cq->error);
	}
	return false;
}

/* Records @cqe: not an error, filled except for op_own. */
static inline void record_completed(const struct hca_cq *cq, const struct mlx5_cqe64 *cqe, uint8_t opcode)
{
	uint32_t qpn_and_opcode = be32toh(cqe->sop_drop_qpn), bytes = be32toh(cqe->byte_cnt);
	uint16_t index = be16toh(cqe->wqe_counter);
	uint32_t device = (uint32_t)cq->context->hca->index;
	uint64_t time = timeline_time_of_call;
	struct timeline_record *arrived = time ? timeline_latest(time, TIMELINE_ARRIVE, qpn_and_opcode) : NULL;

	/* First completion of an acknowledgement: one record for both. */
	if (arrived && opcode == MLX5_CQE_REQ && bytes <= UINT16_MAX)
		timeline_change(
			arrived, TIMELINE_WHAT(TIMELINE_ACKNOWLEDGED, bytes >> 8, index),
			TIMELINE_24_AND_8(arrived->psn, arrived->index), TIMELINE_24_AND_8(arrived->value, bytes),
			TIMELINE_ACKNOWLEDGED_VALUE(cq->number, qpn_and_opcode >> 24, cq->producer_index, device));
	else
		timeline_put(time ? time : timeline_now(), TIMELINE_WHAT(TIMELINE_COMPLETE, opcode, index), cq->number,
			     cq->producer_index, bytes, qpn_and_opcode | (uint64_t)device << 48);
}

static void record_error(const struct hca_cq *cq, const struct completion *completion)
{
	/* A request that fails when it starts was examined after the post. */
	timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_COMPLETE, completion->opcode, completion->wqe_counter),
		     cq->number, cq->producer_index, completion->byte_count,
		     TIMELINE_COMPLETION(completion->qpn, completion->send_opcode, completion->syndrome,
					 completion->vendor_syndrome, cq->context->hca->index));
}

void cq_fill_error(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion)
{
	if (cq->notes & CQ_TIMELINE)
		record_error(cq, completion);
	if (completion->opcode == MLX5_CQE_SIG_ERR)
		cqe_fill_signature(cqe, completion);
	else
		cqe_fill_error(cqe, completion);
}

uint8_t cq_scatter(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion)
{
	bool small = cq->cqe_size == sizeof(*cqe);
	uint32_t room = cq_scatter_room(cq);

	memcpy(small ? cqe : cqe - 1, completion->scattered,
	       completion->byte_count < room ? completion->byte_count : room);
	return small ? MLX5_INLINE_SCATTER_32 : MLX5_INLINE_SCATTER_64;
}

void cq_note(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, uint8_t opcode)
{
	if (cq->notes & CQ_TIMESTAMP)
		cqe->timestamp = htobe64(clock_now_ns());
	if (cq->notes & CQ_TIMELINE)
		record_completed(cq, cqe, opcode);
	if (cq->notes & CQ_GUARD && opcode != MLX5_CQE_REQ)
		page_guard_received(be16toh(cqe->wqe_counter));
}

void cq_raise_if_due(struct hca_cq *cq, uint8_t op_own, bool event)
{
	if (cq->umem)
		umem_copy_out(cq);
	if (cq->ring_exported && op_own >> 4 != MLX5_CQE_REQ)
		count_received(cq->context->hca);
	if (event) {
		cq->forced = true;
		cq->forced_index = cq->producer_index;
	}
	if (cq->armed && (cqe_wakes(cq, op_own) || event))
		event_due(cq);
}

bool hca_cq_write(struct hca_cq *cq, const struct completion *completion)
{
	return cq_write(cq, *completion);
}

/*
 * Returns true if the ring has a CQE that an arming with @consumer as consumer index must report (mlx5-formats 3.6):
 * one at or after that index and the "last notified index" of an adapter, up to which the last event reported.
 * Otherwise a program that arms before it polls the CQEs of its event would get another event for them, which
 * perftest's latency tests take for the next completion.
 *
 * The first word of the record may have a later index than @consumer, or none: a driver need not write it if its CQ
 * ignores overruns (UCX).
 */
static bool already_due(const struct hca_cq *cq, uint32_t consumer)
{
	uint32_t reported = cq->fired ? cq->producer_index - cq->notified : UINT32_MAX;
	uint32_t count = (cq->producer_index - consumer) & CQ_INDEX_MASK;

	count = count < reported ? count : reported;
	count = count < cq->cqe_count ? count : cq->cqe_count;
	if (cq->forced && cq->producer_index - cq->forced_index < count)
		return true;
	for (uint32_t index = cq->producer_index - count; index != cq->producer_index; index++)
		if (cqe_wakes(cq, cq_cqe(cq, index)->op_own))
			return true;
	return false;
}

static void cq_request(struct hca_cq *cq, uint32_t word, uint32_t consumer)
{
	queue_lock(&cq->lock);
	if (!cq->fired || cq->fired_sn != ARM_SN(word)) {
		/* Solicited must not narrow a pending request for any completion (ibv_req_notify_cq(3)). */
		cq->armed_solicited = word & ARM_SOLICITED && (!cq->armed || cq->armed_solicited);
		cq->armed_sn = ARM_SN(word);
		set_armed(cq, true);
		cq->waiting = 0;
		if (already_due(cq, consumer))
			event_due(cq);
	}
	queue_unlock(&cq->lock);
}

void hca_cq_request(struct hca_cq *cq, uint32_t word)
{
	cq_request(cq, word, word & CQ_INDEX_MASK);
}

/*
 * Handles an arm word. 0 may be the first arming of a program, or a record in a umem that was never armed. It counts as
 * an arming: a superfluous event is allowed, a missing one would hang the program. The record's consumer index excludes
 * CQEs consumed earlier, if the program writes it.
 */
void cq_rung(struct hca_cq *cq, uint32_t word)
{
	uint32_t consumer = 0;

	if (word || !cq->umem)
		return hca_cq_request(cq, word);
	if (program_ring_read(&consumer, &cq->umem->dbrec[0], sizeof(consumer)))
		return;
	cq_request(cq, word, be32toh(consumer));
}

static void cq_watch_rung(struct watch *watch)
{
	cq_rung((struct hca_cq *)((char *)watch - offsetof(struct hca_cq, watch)), be32toh(watch->seen[0]));
}

int hca_cq_watch(struct hca_cq *cq)
{
	queue_lock(&cq->lock);
	__atomic_store_n(&cq->ring_exported, true, __ATOMIC_RELAXED);
	cq->attentive = true;
	queue_unlock(&cq->lock);
	/* The consumer index is not watched: it moves with every poll. */
	return watch_start(cq->context->hca->watcher, &cq->watch, cq->umem ? &cq->umem->dbrec[1] : &cq->dbrec[1], 1,
			   cq_watch_rung);
}

int hca_cq_create(struct hca_context *context, const struct hca_cq_attr *attr, struct hca_cq **out)
{
	struct hca_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return -ENOMEM;
	if (id_table_alloc(&context->hca->cqs, &cq->number)) {
		free(cq);
		return -ENOMEM;
	}
	queue_lock_init(&cq->lock, LOCK_LEVEL_CQ, false);
	cq->context = context;
	cq->buffer = attr->buffer;
	cq->cqe_count = attr->cqe_count;
	cq->cqe_size = attr->cqe_size;
	cq->dbrec = attr->dbrec;
	cq->channel = attr->channel;
	cq->notes = (uint8_t)((attr->timestamps ? CQ_TIMESTAMP : 0) | (timeline_is_on() ? CQ_TIMELINE : 0) |
			      (page_guard_is_on() ? CQ_GUARD : 0));
	if (attr->in_umem && umem_init(cq, attr)) {
		id_table_release(&context->hca->cqs, cq->number);
		umem_free(cq);
		queue_lock_destroy(&cq->lock);
		free(cq);
		return -ENOMEM;
	}
	cq->watch.in_umem = attr->in_umem;
	cq->watch.at_once = attr->in_umem;
	cq->ignore_overrun = attr->ignore_overrun;
	cq->completion.type = EVENT_COMPLETION;
	cq->completion.object = attr->cookie;
	cq->error.object = attr->cookie;
	cq->error.type = IBV_EVENT_CQ_ERR;
	timer_init(&cq->moderate_timer, cq_moderate_expired);
	reference_get(&context->references);
	id_table_publish(&context->hca->cqs, cq->number, cq);
	*out = cq;
	return 0;
}

int hca_cq_destroy(struct hca_cq *cq)
{
	struct hca *hca = cq->context->hca;

	if (reference_count(&cq->references))
		return -EBUSY;
	id_table_unpublish(&hca->cqs, cq->number);
	watch_stop(hca->watcher, &cq->watch);
	timer_cancel(&hca->timers, &cq->moderate_timer);
	if (cq->channel)
		event_source_purge(cq->channel, &cq->completion);
	event_source_purge(cq->context->async, &cq->error);
	id_table_release(&hca->cqs, cq->number);
	reference_put(&cq->context->references);
	queue_lock_destroy(&cq->lock);
	umem_free(cq);
	free(cq);
	return 0;
}

struct hca_cq *hca_cq_find(const struct hca_context *context, uint32_t number)
{
	struct hca_cq *cq;

	epoch_enter();
	cq = id_table_find(&context->hca->cqs, number);
	epoch_leave();
	return cq && cq->context == context ? cq : NULL;
}

uint32_t hca_cq_entry_size(const struct hca_cq *cq)
{
	return cq->cqe_size;
}

uint32_t hca_cq_entries(struct hca_cq *cq)
{
	uint32_t entries;

	queue_lock(&cq->lock);
	entries = cq->cqe_count;
	queue_unlock(&cq->lock);
	return entries;
}

uint32_t hca_cq_number(const struct hca_cq *cq)
{
	return cq->number;
}

int hca_cq_resize(struct hca_cq *cq, void *buffer, uint32_t cqe_count, void (*copy)(void *argument), void *argument)
{
	struct mlx5_cqe64 *mark;
	int error = 0;

	queue_lock(&cq->lock);
	/* Unread CQEs need room in the new ring. */
	if (cq_outstanding(cq) >= cqe_count) {
		error = -EINVAL;
	} else {
		/*
		 * A full ring has no room for the marker and does not need it: the next entry is from the previous lap.
		 */
		mark = cq_outstanding(cq) < cq->cqe_count ? cq_cqe(cq, cq->producer_index) : NULL;
		if (mark)
			__atomic_store_n(&mark->op_own,
					 (uint8_t)(MLX5_CQE_RESIZE_CQ << 4 | !!(cq->producer_index & cq->cqe_count)),
					 __ATOMIC_RELEASE);
		cq->producer_index++;
		cq->buffer = buffer;
		cq->cqe_count = cqe_count;
		copy(argument);
	}
	queue_unlock(&cq->lock);
	return error;
}

int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us)
{
	queue_lock(&cq->lock);
	cq->moderate_count = count;
	cq->moderate_period_us = period_us;
	if (cq->armed && cq->waiting)
		cq_fire(cq);
	queue_unlock(&cq->lock);
	return 0;
}

/*
 * Returns how many of the first @count completions fit into one record: without error, with a constant step of wr_id.
 */
static uint32_t polled_alike(const struct ibv_wc *wc, uint32_t count)
{
	uint64_t step = count > 1 ? wc[1].wr_id - wc[0].wr_id : 0;
	uint32_t alike = 1;

	if (wc->status != IBV_WC_SUCCESS || (uint64_t)(int64_t)(int32_t)step != step)
		return 1;
	if (count > TIMELINE_MOST_POLLS)
		count = TIMELINE_MOST_POLLS;
	while (alike < count && wc[alike].status == IBV_WC_SUCCESS && wc[alike].wr_id - wc[alike - 1].wr_id == step)
		alike++;
	return alike;
}

void hca_cq_polled(const struct hca_cq *cq, uint64_t time, uint32_t consumer_index, const struct ibv_wc *wc,
		   uint32_t count)
{
	const uint32_t device = (uint32_t)cq->context->hca->index;
	uint32_t alike;

	for (; count; count -= alike, wc += alike, consumer_index += alike) {
		alike = polled_alike(wc, count);
		if (alike > 1)
			timeline_put(time, TIMELINE_WHAT(TIMELINE_POLL_SOME, 0, alike), cq->number,
				     TIMELINE_24_AND_8(consumer_index, device), (uint32_t)(wc[1].wr_id - wc[0].wr_id),
				     wc->wr_id);
		else
			timeline_put(time, TIMELINE_WHAT(TIMELINE_POLL, wc->status, 0), cq->number, consumer_index,
				     device << 24, wc->wr_id);
	}
}
