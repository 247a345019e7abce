/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers, see timer.h. */
#include "hca/timer.h"

#include <time.h>

#include "hca/progress.h"

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void timers_init(struct timers *timers)
{
	*timers = (struct timers){0};
	pthread_mutex_init(&timers->lock, NULL);
	pthread_cond_init(&timers->fired, NULL);
}

void timers_after_fork(struct timers *timers)
{
	for (struct timer *timer = timers->first; timer; timer = timer->next)
		timer->link = NULL;
	timers_init(timers);
}

static void unlink_timer(struct timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

static void link_timer(struct timers *timers, struct timer *timer)
{
	struct timer **link = &timers->first;

	while (*link && (*link)->deadline_ns <= timer->deadline_ns)
		link = &(*link)->next;
	timer->next = *link;
	if (timer->next)
		timer->next->link = &timer->next;
	timer->link = link;
	*link = timer;
}

uint64_t timers_fire_due(struct timers *timers)
{
	struct timer *timer;
	uint64_t next;

	pthread_mutex_lock(&timers->lock);
	while ((timer = timers->first) && timer->deadline_ns <= clock_now_ns()) {
		unlink_timer(timer);
		timers->running = timer;
		timers->runner = pthread_self();
		pthread_mutex_unlock(&timers->lock);
		timer->function(timer);
		pthread_mutex_lock(&timers->lock);
		timers->running = NULL;
		pthread_cond_broadcast(&timers->fired);
	}
	next = timer ? timer->deadline_ns : UINT64_MAX;
	pthread_mutex_unlock(&timers->lock);
	return next;
}

int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	int error = progress_start();
	bool first;

	if (error)
		return error;
	pthread_mutex_lock(&timers->lock);
	unlink_timer(timer);
	timer->deadline_ns = deadline_ns;
	link_timer(timers, timer);
	first = timers->first == timer;
	pthread_mutex_unlock(&timers->lock);
	if (first)
		progress_wake_before(deadline_ns);
	return 0;
}

void timer_disarm(struct timers *timers, struct timer *timer)
{
	pthread_mutex_lock(&timers->lock);
	unlink_timer(timer);
	pthread_mutex_unlock(&timers->lock);
}

void timer_cancel(struct timers *timers, struct timer *timer)
{
	pthread_mutex_lock(&timers->lock);
	unlink_timer(timer);
	while (timers->running == timer && !pthread_equal(pthread_self(), timers->runner)) {
		pthread_cond_wait(&timers->fired, &timers->lock);
		unlink_timer(timer);
	}
	pthread_mutex_unlock(&timers->lock);
}
