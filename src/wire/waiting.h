/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Backpressure. A link without room returns LINK_BUSY and names a struct link_queue (run->full), in which the requester
 * or the replies of a QP wait. The side that makes room resumes waiters, first come, first served. Each resource that
 * can be full, such as the ring of one peer, has its own queue.
 *
 * A struct link_queue is part of the resource, and closed before it is freed; a struct link_waiter is part of a
 * requester or of struct answers. Before a QP is freed it leaves all queues for good (link_leave()), because a thread
 * that found it earlier may still try to send for it. One leaf lock covers all queues and waiters; callers of
 * link_enqueue() and link_dequeue() hold the QP's lock.
 */
#ifndef SOFTHCA_WIRE_WAITING_H
#define SOFTHCA_WIRE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

struct link_queue;
struct run;

struct link_sender {
	/*
	 * Called when there is room for the requester of @sender, or for its replies. No lock held; inside an epoch
	 * section.
	 */
	void (*resume)(struct link_sender *sender, bool requester, struct run *run);
	bool leaves; /* must not wait any more; covered by the lock of waiting.c */
};

/* All zero: not waiting. */
struct link_waiter {
	struct link_queue *queue; /* atomic; NULL: none */
	struct link_waiter *next, **place;
	struct link_sender *sender;
	bool requester; /* the requester waits, otherwise the replies */
};

/* All zero: open and empty. */
struct link_queue {
	struct link_waiter *first, **last; /* `last` is NULL until a waiter has been added */
	uint32_t count;
	bool closed;
};

/** Queue of links that do not name one. */
extern struct link_queue link_common_queue;

/**
 * Adds @waiter of @sender at the end of @queue, unless it is in a queue, @queue is closed, or the sender is about to be
 * destroyed. The caller must then try to send again, because room made before is not reported.
 */
void link_enqueue(struct link_queue *queue, struct link_waiter *waiter, struct link_sender *sender, bool requester);
/** Returns true if @waiter will be scheduled again. Under the lock of its QP. */
static inline bool link_waits(const struct link_waiter *waiter)
{
	return __atomic_load_n(&waiter->queue, __ATOMIC_RELAXED);
}

/** Removes @waiter from its queue, if any. Any thread. */
void link_dequeue(struct link_waiter *waiter);
/**
 * Prevents the waiters of @sender, which is about to be destroyed, from waiting again. The caller removes those that
 * wait now. The lock of its QP is held.
 */
void link_leave(struct link_sender *sender);

/** Resumes the first @most waiters, scheduled in @run. No lock held; inside an epoch section. */
void link_resume(struct link_queue *queue, uint32_t most, struct run *run);
/** Any thread. */
uint32_t link_waiters(struct link_queue *queue);
/** Any thread. */
static inline bool link_has_waiters(struct link_queue *queue)
{
	return link_waiters(queue);
}

/** Resumes all waiters, and accepts no new ones. */
void link_close(struct link_queue *queue, struct run *run);

/** Removes all waiters of @queue, which is about to be freed. For a forked child: its QPs have no connections. */
void link_abandon(struct link_queue *queue);
/** Handlers around fork(): hold the lock. */
void waiting_before_fork(void);
void waiting_after_fork(bool child);

#endif
