/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries keep their indices in a larger ring; the new ones join the end of the free list. A ring never shrinks:
 * lowering max_wr only lowers the number that may be posted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"
#include "verbs/queue/srq.h"

struct move {
	struct user_srq *srq;
	void *ring;
	uint32_t entry_count;
};

/* The device accesses no entry meanwhile. The counter of posted entries restarts. */
static void srq_move_entries(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first)
{
	const struct move *move = argument;
	struct user_srq *srq = move->srq;
	uint32_t old_count = srq->entry_count;
	uint32_t old_tail = srq->tail;

	memcpy(move->ring, srq->buffer, (size_t)old_count << srq->entry_shift);
	srq->buffer = move->ring;
	srq->entry_count = move->entry_count;
	srq_link(srq, old_tail, old_count);
	srq_chain(srq, old_count);
	srq->counter = posted;
	__atomic_store_n(srq->dbrec, htobe32(srq->counter), __ATOMIC_RELEASE);
	*first = next_index;
}

static int srq_grow(struct user_srq *srq, uint32_t entry_count)
{
	struct move move = {.srq = srq, .entry_count = entry_count};
	size_t old_bytes = (size_t)srq->entry_count << srq->entry_shift;
	size_t new_bytes = (size_t)entry_count << srq->entry_shift;
	void *old = srq->buffer;
	uint64_t *wr_id = realloc(srq->wr_id, entry_count * sizeof(*wr_id));
	int result;

	if (!wr_id)
		return -ENOMEM;
	srq->wr_id = wr_id; /* remains if the rest fails */
	move.ring = ring_alloc(srq->pd, new_bytes, MLX5DV_RES_TYPE_SRQ);
	if (!move.ring)
		return -ENOMEM;
	result = hca_srq_resize(srq->device, move.ring, entry_count, srq_move_entries, &move);
	if (result)
		ring_free(srq->pd, move.ring, new_bytes, MLX5DV_RES_TYPE_SRQ);
	else
		ring_free(srq->pd, old, old_bytes, MLX5DV_RES_TYPE_SRQ);
	return result;
}

int srq_resize(struct user_srq *srq, uint32_t max_wr)
{
	uint32_t entry_count = srq_entries_for(max_wr);
	int result = entry_count > srq->entry_count ? srq_grow(srq, entry_count) : 0;

	if (result)
		return -REFUSE(hca_of_context(srq->base.context), "ibv_modify_srq", -result, RULE_QUEUE_MEMORY,
			       (uint64_t)entry_count << srq->entry_shift);
	srq->max_wr = entry_count - 1;
	return 0;
}
