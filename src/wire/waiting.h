/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for room. A link that has none says LINK_BUSY and names a struct link_queue (run->full); the requester, or the
 * answers, that wanted to send wait there. The side that makes room lets some of them go on, first come, first served.
 * Each place that can be full, such as the ring of one peer, has a queue of its own, so one that waits for one peer holds up
 * nobody that sends to another, and room for one wakes none of the others.
 *
 * Belonging: a struct link_queue is part of what can be full, a struct link_waiter of a requester or of struct answers. A queue
 * is closed before it is freed; a QP leaves all queues, for good, before it is (link_leave): a thread that found it before may
 * still try to send for it. Lock: one leaf for all queues and waiters; that of the QP is held around link_enqueue() and
 * link_dequeue().
 */
#ifndef SOFTHCA_WIRE_WAITING_H
#define SOFTHCA_WIRE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

struct link_queue;
struct run;

/* What waits: a QP, as a rule, and which of its parts may. */
struct link_sender {
	/* There is room for the requester of @sender, or for something that it owes. No lock held; inside an epoch section. */
	void (*resume)(struct link_sender *sender, bool requester, struct run *run);
	bool leaves; /* it waits no more; under the lock of waiting.c */
};

/* All zero: waits nowhere. */
struct link_waiter {
	struct link_queue *queue; /* atomic; that it is in, or NULL */
	struct link_waiter *next, **place;
	struct link_sender *sender;
	bool requester; /* of @sender; else answers that it owes */
};

/* All zero: nobody waits, whoever comes may. */
struct link_queue {
	struct link_waiter *first, **last; /* last NULL: of an empty queue that nobody has waited in */
	uint32_t count;
	bool closed;
};

/** Of links that do not say what is full. */
extern struct link_queue link_common_queue;

/**
 * @waiter, of @sender, waits in @queue from now on, behind those that are there; one that is in a queue stays where it is. Does
 * nothing if the queue is closed or the sender about to be destroyed. Room that was made before would be missed: the caller tries
 * again after this.
 */
void link_enqueue(struct link_queue *queue, struct link_waiter *waiter, struct link_sender *sender, bool requester);
/** True if @waiter waits. Under the lock of its QP: if so, it is scheduled again. */
static inline bool link_waits(const struct link_waiter *waiter)
{
	return __atomic_load_n(&waiter->queue, __ATOMIC_RELAXED);
}

/** @waiter waits no more. Any thread. */
void link_dequeue(struct link_waiter *waiter);
/**
 * @sender is about to be destroyed: none of its waiters begins to wait any more, and the caller takes out those that do
 * (link_dequeue()). The lock of its QP is held.
 */
void link_leave(struct link_sender *sender);

/** There is room: schedules in @run the first @most that wait in @queue. No lock held; inside an epoch section. */
void link_resume(struct link_queue *queue, uint32_t most, struct run *run);
/** How many wait in @queue. Any thread. */
uint32_t link_waiters(struct link_queue *queue);
/** True if somebody does. */
static inline bool link_has_waiters(struct link_queue *queue)
{
	return link_waiters(queue);
}

/** The same as link_resume() of all, and nobody waits in @queue any more. */
void link_close(struct link_queue *queue, struct run *run);

/** In a forked child, whose QPs reach nobody: @queue, which is about to be freed, is left by all. */
void link_abandon(struct link_queue *queue);
/** Around fork(): the lock is held meanwhile, so that the child finds all queues whole. */
void waiting_before_fork(void);
void waiting_after_fork(bool child);

#endif
