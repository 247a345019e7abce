/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers and the device thread, see timer.h. */
#include "hca/timer.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void timers_init(struct timers *timers)
{
	pthread_condattr_t attr;

	*timers = (struct timers){0};
	pthread_mutex_init(&timers->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&timers->changed, &attr);
	pthread_condattr_destroy(&attr);
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

static void fire(struct timers *timers, struct timer *timer)
{
	unlink_timer(timer);
	timers->running = timer;
	pthread_mutex_unlock(&timers->lock);
	timer->function(timer);
	pthread_mutex_lock(&timers->lock);
	timers->running = NULL;
	pthread_cond_broadcast(&timers->changed);
}

static void *device_thread(void *argument)
{
	struct timers *timers = argument;

	pthread_mutex_lock(&timers->lock);
	for (;;) {
		struct timer *timer = timers->first;
		struct timespec until;

		if (!timer) {
			pthread_cond_wait(&timers->changed, &timers->lock);
			continue;
		}
		if (timer->deadline_ns <= clock_now_ns()) {
			fire(timers, timer);
			continue;
		}
		until.tv_sec = (time_t)(timer->deadline_ns / 1000000000u);
		until.tv_nsec = (long)(timer->deadline_ns % 1000000000u);
		pthread_cond_timedwait(&timers->changed, &timers->lock, &until);
	}
	return NULL;
}

/* The thread must not take the program's signals. */
static int start_thread(struct timers *timers)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&timers->thread, &attr, device_thread, timers);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	timers->started = !error;
	return error ? -EAGAIN : 0;
}

int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	int error = 0;

	pthread_mutex_lock(&timers->lock);
	unlink_timer(timer);
	timer->deadline_ns = deadline_ns;
	link_timer(timers, timer);
	if (!timers->started)
		error = start_thread(timers);
	else if (timers->first == timer)
		pthread_cond_broadcast(&timers->changed);
	if (error)
		unlink_timer(timer);
	pthread_mutex_unlock(&timers->lock);
	return error;
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
	while (timers->running == timer && !pthread_equal(pthread_self(), timers->thread)) {
		pthread_cond_wait(&timers->changed, &timers->lock);
		unlink_timer(timer);
	}
	pthread_mutex_unlock(&timers->lock);
}
