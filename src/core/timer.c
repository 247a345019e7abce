/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers. */
#include "core/timer.h"

#include <time.h>

#include "core/cancellation.h"

uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void timers_init(struct timers *timers, const struct timer_thread *thread)
{
	*timers = (struct timers){.thread = thread, .next_ns = UINT64_MAX};
	pthread_mutex_init(&timers->lock, NULL);
	pthread_cond_init(&timers->fired, NULL);
}

void timers_after_fork(struct timers *timers)
{
	wheel_clear(&timers->wheel);
	timers_init(timers, timers->thread);
}

uint64_t timers_fire_due(struct timers *timers)
{
	struct timer *timer;
	uint64_t next;

	pthread_mutex_lock(&timers->lock);
	timers->next_ns = 0;
	while ((timer = wheel_take_due(&timers->wheel, clock_now_ns()))) {
		timers->running = timer;
		timers->runner = pthread_self();
		pthread_mutex_unlock(&timers->lock);
		timer->function(timer);
		pthread_mutex_lock(&timers->lock);
		timers->running = NULL;
		pthread_cond_broadcast(&timers->fired);
	}
	next = timers->next_ns = wheel_next_ns(&timers->wheel);
	pthread_mutex_unlock(&timers->lock);
	return next;
}

int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	int error = timers->thread->start();
	bool sooner;

	if (error)
		return error;
	pthread_mutex_lock(&timers->lock);
	wheel_remove(timer);
	timer->deadline_ns = deadline_ns;
	wheel_add(&timers->wheel, timer);
	sooner = deadline_ns < timers->next_ns;
	if (sooner)
		timers->next_ns = deadline_ns;
	pthread_mutex_unlock(&timers->lock);
	if (sooner)
		timers->thread->wake_before(deadline_ns);
	return 0;
}

void timer_disarm(struct timers *timers, struct timer *timer)
{
	pthread_mutex_lock(&timers->lock);
	wheel_remove(timer);
	pthread_mutex_unlock(&timers->lock);
}

void timer_cancel(struct timers *timers, struct timer *timer)
{
	WITHOUT_CANCELLATION;

	pthread_mutex_lock(&timers->lock);
	wheel_remove(timer);
	while (timers->running == timer && !pthread_equal(pthread_self(), timers->runner)) {
		pthread_cond_wait(&timers->fired, &timers->lock);
		wheel_remove(timer);
	}
	pthread_mutex_unlock(&timers->lock);
}
