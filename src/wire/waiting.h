/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Backpressure. A link without room returns LINK_BUSY and names a struct link_queue (run->full), in which the requester
 * or the replies of a QP wait. The side that makes room resumes waiters, first come, first served. Each resource that
 * can be full, such as the ring of one peer, has its own queue. So waiting for one peer does not delay sends to
 * another, and room in one resource wakes only its own waiters.
 *
 * Ownership: a struct link_queue is part of the resource, a struct link_waiter part of a requester or of struct
 * answers. A queue is closed before it is freed. Before a QP is freed it leaves all queues for good (link_leave()),
 * because a thread that found it earlier may still try to send for it. Locks: one leaf lock covers all queues and
 * waiters; callers of link_enqueue() and link_dequeue() hold the QP's lock.
 */
#ifndef SOFTHCA_WIRE_WAITING_H
#define SOFTHCA_WIRE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

struct link_queue;
struct run;

/* A sender that can wait, usually a QP. */
struct link_sender {
	/* Called when there is room for the requester of @sender, or for its replies. No lock held; inside an epoch section. */
	void (*resume)(struct link_sender *sender, bool requester, struct run *run);
	bool leaves; /* the sender must not wait any more; covered by the lock of waiting.c */
};

/* All zero: not waiting. */
struct link_waiter {
	struct link_queue *queue; /* atomic; its queue, or NULL */
	struct link_waiter *next, **place;
	struct link_sender *sender;
	bool requester; /* the requester of the sender waits, otherwise its replies */
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
 * Adds @waiter of @sender at the end of @queue. A waiter that is in a queue already stays there. Does nothing if the
 * queue is closed or the sender is about to be destroyed. The caller must try to send again afterwards, because it is
 * not notified of room made before the call.
 */
void link_enqueue(struct link_queue *queue, struct link_waiter *waiter, struct link_sender *sender, bool requester);
/** Returns true if @waiter waits, and so will be scheduled again. Under the lock of its QP. */
static inline bool link_waits(const struct link_waiter *waiter)
{
	return __atomic_load_n(&waiter->queue, __ATOMIC_RELAXED);
}

/** Removes @waiter from its queue, if it is in one. Any thread. */
void link_dequeue(struct link_waiter *waiter);
/**
 * Prevents the waiters of @sender, which is about to be destroyed, from waiting again. The caller removes those that
 * wait now (link_dequeue()). The lock of its QP is held.
 */
void link_leave(struct link_sender *sender);

/** Resumes the first @most waiters of @queue, as there is room; schedules them in @run. No lock held; inside an epoch section. */
void link_resume(struct link_queue *queue, uint32_t most, struct run *run);
/** Returns the number of waiters in @queue. Any thread. */
uint32_t link_waiters(struct link_queue *queue);
/** Returns true if @queue has waiters. Any thread. */
static inline bool link_has_waiters(struct link_queue *queue)
{
	return link_waiters(queue);
}

/** Closes @queue: resumes all waiters, and accepts no new ones. */
void link_close(struct link_queue *queue, struct run *run);

/** Removes all waiters from @queue, which is about to be freed. For a forked child: its QPs have no connections. */
void link_abandon(struct link_queue *queue);
/** Handlers around fork(): hold the lock, so that the child finds all queues consistent. */
void waiting_before_fork(void);
void waiting_after_fork(bool child);

#endif
