/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of an SRQ (mlx5-formats 2.2): a list of entries linked by index. Entries that are posted hang together in
 * the order of posting, and the device follows their links. The free ones form the rest of the same list, from `head`
 * (next to post) to `tail`; the tail is never posted, so that a posted entry always has a link that is right.
 *
 * An entry keeps its index as long as it is used, through a resize too: CQEs name receives by it.
 */
#ifndef SOFTHCA_VERBS_QUEUE_SRQ_H
#define SOFTHCA_VERBS_QUEUE_SRQ_H

#include <endian.h>

#include "verbs/object/objects.h"

/** Entry @index; its first segment is the link. */
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

/** Sizes an SRQ for @max_sge SGEs: sets entry_shift and max_sge. @max_sge up to LIMIT_MAX_SRQ_SGE. (verbs/queue/srq_ring.c) */
void srq_size_entries(struct user_srq *srq, uint32_t max_sge);

/** Entries of a ring in which @max_wr can be posted; one fewer is the max_wr that the program gets back. */
uint32_t srq_entries_for(uint32_t max_wr);

/** Links the entries @first … entry_count - 1 one after the other and makes the last one the tail. */
void srq_chain(struct user_srq *srq, uint32_t first);

/**
 * IBV_SRQ_MAX_WR of ibv_modify_srq(3): room for at least @max_wr, at most LIMIT_MAX_SRQ_WR. The caller holds the SRQ
 * lock and has compared @max_wr with `used`. A smaller SRQ keeps its ring and lowers what may be posted. Returns 0 or
 * -ENOMEM. (verbs/queue/srq_resize.c)
 */
int srq_resize(struct user_srq *srq, uint32_t max_wr);

#endif
