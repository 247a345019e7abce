/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs that were told LINK_BUSY, see link.h. */
#include <pthread.h>

#include "hca/qp.h"
#include "link/link.h"

/* Leaf lock. The list is intrusive, first in, first out: a QP is in it at most once. */
static struct {
	pthread_mutex_t lock;
	struct hca_qp *first, **last;
	uint32_t count; /* atomic */
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &waiting.first};

static void set_count(uint32_t count)
{
	__atomic_store_n(&waiting.count, count, __ATOMIC_RELAXED);
}

bool link_has_waiters(void)
{
	return __atomic_load_n(&waiting.count, __ATOMIC_RELAXED);
}

void link_enqueue(struct hca_qp *qp)
{
	pthread_mutex_lock(&waiting.lock);
	if (!qp->waits_for_link) {
		qp->waits_for_link = true;
		qp->next_waiting = NULL;
		*waiting.last = qp;
		waiting.last = &qp->next_waiting;
		set_count(waiting.count + 1);
	}
	pthread_mutex_unlock(&waiting.lock);
}

/* Takes what *@place names out of the list. The lock is held. */
static struct hca_qp *take(struct hca_qp **place)
{
	struct hca_qp *qp = *place;

	*place = qp->next_waiting;
	if (!*place)
		waiting.last = place;
	qp->waits_for_link = false;
	set_count(waiting.count - 1);
	return qp;
}

void link_forget(struct hca_qp *qp)
{
	struct hca_qp **place = &waiting.first;

	pthread_mutex_lock(&waiting.lock);
	while (*place && *place != qp)
		place = &(*place)->next_waiting;
	if (*place)
		take(place);
	pthread_mutex_unlock(&waiting.lock);
}

static struct hca_qp *take_first(void)
{
	struct hca_qp *qp;

	pthread_mutex_lock(&waiting.lock);
	qp = waiting.first ? take(&waiting.first) : NULL;
	pthread_mutex_unlock(&waiting.lock);
	return qp;
}

void link_resume(struct run *run)
{
	/* Not those that come back meanwhile. What was in the list lives until this section ends. */
	uint32_t count = __atomic_load_n(&waiting.count, __ATOMIC_RELAXED);
	struct hca_qp *qp;

	while (count-- && (qp = take_first())) {
		queue_lock(&qp->lock);
		/* Room that was made shows that the peer lives, be it slow. */
		qp->requester.strokes++;
		run_schedule_requester(run, qp);
		queue_unlock(&qp->lock);
	}
}

void link_after_fork(void)
{
	pthread_mutex_init(&waiting.lock, NULL);
	waiting.first = NULL;
	waiting.last = &waiting.first;
	set_count(0);
}
