/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of entries of an SRQ: sizes, links, and returning entries. */
#include <errno.h>

#include "verbs/object/lint.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/srq.h"

enum {
	SEGMENT = sizeof(struct mlx5_wqe_data_seg),
	ENTRY_MIN = 2 * SEGMENT, /* link and one SGE */
};

/* mlx5-formats 2.2: a power of two, with all bytes usable for SGEs. */
void srq_size_entries(struct user_srq *srq, uint32_t max_sge)
{
	uint32_t size = queue_entries(SEGMENT * (1 + max_sge));

	if (size < ENTRY_MIN)
		size = ENTRY_MIN;
	srq->entry_shift = __builtin_ctz(size);
	srq->max_sge = size / SEGMENT - 1;
}

uint32_t srq_entries_for(uint32_t max_wr)
{
	return queue_entries(max_wr + 1);
}

void srq_chain(struct user_srq *srq, uint32_t first)
{
	for (uint32_t index = first; index < srq->entry_count - 1; index++)
		srq_link(srq, index, index + 1);
	srq->tail = srq->entry_count - 1;
}

int user_srq_complete(struct user_srq *srq, uint16_t index, uint64_t *wr_id)
{
	int result = -EINVAL;

	queue_lock(&srq->lock);
	if (index < srq->entry_count) {
		LINT(srq_receive_completed, srq, index);
		*wr_id = srq->wr_id[index];
		srq_link(srq, srq->tail, index);
		srq->tail = index;
		srq->used--;
		result = 0;
	}
	queue_unlock(&srq->lock);
	return result;
}
