/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the CQ share: the ring and its initial state, extended polling, the event counter.
 */
#ifndef SOFTHCA_VERBS_QUEUE_CQ_H
#define SOFTHCA_VERBS_QUEUE_CQ_H

#include "verbs/object/objects.h"

/**
 * Ring of @count entries (power of two) of @size bytes (64 or 128), all of them invalid: op_own 0xf0 (mlx5-formats
 * 3.1). A large ring costs memory only where it is used. @pd: parent domain whose allocator is asked, or NULL.
 * NULL with errno set on failure. (verbs/queue/cq_ring.c)
 */
void *cq_ring_alloc(struct user_pd *pd, uint32_t count, uint32_t size);
void cq_ring_free(struct user_pd *pd, void *ring, uint32_t count, uint32_t size);

/** Fills the functions of cq->ex for extended polling: the readers that @wc_flags ask for. (verbs/queue/cq_poll_ex.c) */
void cq_poll_ex_fill(struct user_cq *cq, uint64_t wc_flags);

/** ibv_get_cq_event(3) handed out an event of @cq: a later ibv_req_notify_cq(3) is a new request. (verbs/queue/cq_notify.c) */
void cq_event_taken(struct user_cq *cq);

/**
 * Moves the CQEs not yet polled to @ring of @count entries, up to the RESIZE_CQ marker that the device wrote into the
 * old ring, and makes it the ring of @cq. The caller holds the CQ lock, publishes the consumer index and frees the old
 * ring. (verbs/queue/cq_resize.c)
 */
void cq_continue_in(struct user_cq *cq, void *ring, uint32_t count);

/** The number of entries of a ring that must hold @count: the next power of two. @count up to 2^31. */
static inline uint32_t queue_entries(uint32_t count)
{
	return count <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(count - 1));
}

#endif
