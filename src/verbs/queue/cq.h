/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions shared by the files of the CQ: ring and its initial state, extended polling, event counter. */
#ifndef SOFTHCA_VERBS_QUEUE_CQ_H
#define SOFTHCA_VERBS_QUEUE_CQ_H

#include "verbs/object/objects.h"

/**
 * Allocates a ring of @count entries (power of two) of @size bytes (64 or 128), all invalid: op_own 0xf0 (mlx5-formats
 * 3.1). A large ring uses memory only for entries that were written. @pd: parent domain, or NULL. NULL with errno set
 * on failure. (verbs/queue/cq_ring.c)
 */
void *cq_ring_alloc(struct user_pd *pd, uint32_t count, uint32_t size);
void cq_ring_free(struct user_pd *pd, void *ring, uint32_t count, uint32_t size);

/** Sets the functions for extended polling, and the readers that @wc_flags request. (verbs/queue/cq_poll_ex.c) */
void cq_poll_ex_fill(struct user_cq *cq, uint64_t wc_flags);

/**
 * Called when ibv_get_cq_event(3) returned an event of @cq: a later ibv_req_notify_cq(3) is a new request.
 * (verbs/queue/cq_notify.c)
 */
void cq_event_taken(struct user_cq *cq);

/**
 * Makes @ring of @count entries the ring of @cq, with the CQEs not yet polled, up to the RESIZE_CQ marker that the
 * device wrote into the old ring. The caller holds the CQ lock, publishes the consumer index and frees the old ring.
 * (verbs/queue/cq_resize.c)
 */
void cq_continue_in(struct user_cq *cq, void *ring, uint32_t count);

/** Returns the next power of two. @count is at most 2^31. */
static inline uint32_t queue_entries(uint32_t count)
{
	return count <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(count - 1));
}

#endif
