/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ring of an SRQ (mlx5-formats 2.2). Posted entries are linked in the order of posting, and the device follows their
 * links. The free entries are the rest of the same list, from `head` (next to post) to `tail`. The tail is never
 * posted, so that the link of every posted entry is valid.
 *
 * An entry keeps its index while it is in use, even across a resize: CQEs name receives by it.
 */
#ifndef SOFTHCA_VERBS_QUEUE_SRQ_H
#define SOFTHCA_VERBS_QUEUE_SRQ_H

#include <endian.h>

#include "verbs/object/objects.h"

/** Returns entry @index, whose first segment is the link. */
static inline struct mlx5_wqe_srq_next_seg *user_srq_entry(const struct user_srq *srq, uint32_t index)
{
	return (struct mlx5_wqe_srq_next_seg *)((char *)srq->buffer + ((size_t)index << srq->entry_shift));
}

static inline uint32_t srq_next(const struct user_srq *srq, uint32_t index)
{
	return be16toh(user_srq_entry(srq, index)->next_wqe_index);
}

static inline void srq_link(struct user_srq *srq, uint32_t index, uint32_t next)
{
	user_srq_entry(srq, index)->next_wqe_index = htobe16(next);
}

/** Sets entry_shift and max_sge for @max_sge SGEs, at most LIMIT_MAX_SRQ_SGE. (verbs/queue/srq_ring.c) */
void srq_size_entries(struct user_srq *srq, uint32_t max_sge);

/** Returns the entries of a ring for @max_wr receives. The max_wr returned to the program is one less. */
uint32_t srq_entries_for(uint32_t max_wr);

/** Links the entries from @first on in sequence and makes the last one the tail. */
void srq_chain(struct user_srq *srq, uint32_t first);

/**
 * Implements IBV_SRQ_MAX_WR of ibv_modify_srq(3): room for at least @max_wr, at most LIMIT_MAX_SRQ_WR. The caller holds
 * the SRQ lock and has compared @max_wr with `used`. Returns 0 or -ENOMEM. (verbs/queue/srq_resize.c)
 */
int srq_resize(struct user_srq *srq, uint32_t max_wr);

#endif
