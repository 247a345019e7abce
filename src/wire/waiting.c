/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of waiting senders. */
#include "wire/waiting.h"

#include <pthread.h>

struct link_queue link_common_queue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void link_enqueue(struct link_queue *queue, struct link_waiter *waiter, struct link_sender *sender, bool requester)
{
	pthread_mutex_lock(&lock);
	if (!waiter->queue && !queue->closed && !sender->leaves) {
		if (!queue->first)
			queue->last = &queue->first;
		waiter->place = queue->last;
		waiter->next = NULL;
		waiter->sender = sender;
		waiter->requester = requester;
		*queue->last = waiter;
		queue->last = &waiter->next;
		queue->count++;
		__atomic_store_n(&waiter->queue, queue, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

/* The lock is held. */
static void waiter_remove(struct link_waiter *waiter)
{
	if (!waiter->queue)
		return;
	*waiter->place = waiter->next;
	if (waiter->next)
		waiter->next->place = waiter->place;
	else
		waiter->queue->last = waiter->place;
	waiter->queue->count--;
	__atomic_store_n(&waiter->queue, NULL, __ATOMIC_RELAXED);
}

void link_dequeue(struct link_waiter *waiter)
{
	pthread_mutex_lock(&lock);
	waiter_remove(waiter);
	pthread_mutex_unlock(&lock);
}

/*
 * A thread that found the QP is inside an epoch section, which keeps the QP allocated. If it tries to send for the QP,
 * `leaves` prevents the QP from waiting again.
 */
void link_leave(struct link_sender *sender)
{
	pthread_mutex_lock(&lock);
	sender->leaves = true;
	pthread_mutex_unlock(&lock);
}

/*
 * Removes the first waiter. Returns its sender or NULL, and which part of it waited. The QP lives until the epoch
 * section ends.
 */
static struct link_sender *link_queue_pop(struct link_queue *queue, bool *requester)
{
	struct link_waiter *waiter;
	struct link_sender *sender = NULL;

	pthread_mutex_lock(&lock);
	waiter = queue->first;
	if (waiter) {
		sender = waiter->sender;
		*requester = waiter->requester;
		waiter_remove(waiter);
	}
	pthread_mutex_unlock(&lock);
	return sender;
}

uint32_t link_waiters(struct link_queue *queue)
{
	uint32_t count;

	pthread_mutex_lock(&lock);
	count = queue->count;
	pthread_mutex_unlock(&lock);
	return count;
}

void link_resume(struct link_queue *queue, uint32_t most, struct run *run)
{
	struct link_sender *sender;
	bool requester;

	while (most-- && (sender = link_queue_pop(queue, &requester)))
		sender->resume(sender, requester, run);
}

void link_close(struct link_queue *queue, struct run *run)
{
	pthread_mutex_lock(&lock);
	queue->closed = true;
	pthread_mutex_unlock(&lock);
	link_resume(queue, UINT32_MAX, run);
}

void link_abandon(struct link_queue *queue)
{
	while (queue->first)
		waiter_remove(queue->first);
}

void waiting_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void waiting_after_fork(bool child)
{
	if (child)
		link_abandon(&link_common_queue);
	pthread_mutex_unlock(&lock);
}
