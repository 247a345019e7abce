/* SPDX-License-Identifier: BSD-2-Clause */
/* Clock and timers of tests, see wire_clock.h. */
#include "wire_clock.h"

#include <stddef.h>

#include "hca/hca.h"

static uint64_t now_ns = 1000000000;
static struct timer *first; /* timers of all devices, by deadline */

uint64_t clock_now_ns(void)
{
	return now_ns;
}

void timers_init(struct timers *timers, const struct timer_thread *thread)
{
	(void)timers;
	(void)thread;
	first = NULL;
}

void timers_after_fork(struct timers *timers)
{
	(void)timers;
	first = NULL;
}

void timer_disarm(struct timers *timers, struct timer *timer)
{
	(void)timers;
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

void timer_cancel(struct timers *timers, struct timer *timer)
{
	timer_disarm(timers, timer);
}

int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	struct timer **link = &first;

	timer_disarm(timers, timer);
	timer->deadline_ns = deadline_ns;
	while (*link && (*link)->deadline_ns <= deadline_ns)
		link = &(*link)->next;
	timer->next = *link;
	if (timer->next)
		timer->next->link = &timer->next;
	timer->link = link;
	*link = timer;
	return 0;
}

/* The device thread fires no timers: time passes only at the request of the test. */
uint64_t timers_fire_due(struct timers *timers)
{
	(void)timers;
	return UINT64_MAX;
}

bool wire_clock_next(void)
{
	struct timer *timer = first;

	if (!timer)
		return false;
	if (timer->deadline_ns > now_ns)
		now_ns = timer->deadline_ns;
	timer_disarm(NULL, timer);
	timer->function(timer);
	return true;
}

uint64_t wire_clock_left(void)
{
	const struct timer *timer = first;

	if (!timer)
		return UINT64_MAX;
	return timer->deadline_ns > now_ns ? timer->deadline_ns - now_ns : 0;
}

void wire_clock_pass(uint64_t ns)
{
	uint64_t end = now_ns + ns;

	while (wire_clock_left() <= end - now_ns)
		wire_clock_next();
	now_ns = end;
}
