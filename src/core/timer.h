/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of a device. The device thread (progress/progress.h) fires them; arming the first one starts it.
 *
 * A timer is embedded in its object. Its function runs on the device thread, inside no epoch section. After
 * timer_cancel() returned, the function does not run and will not run. Locks: timers.lock is a leaf, except that
 * timer_cancel waits for a running function, so it must not be called under a lock which that function takes.
 *
 * A function is called within 1.024 us of its deadline, if the thread has a processor, and never before it. Arming and
 * disarming take the same time however many timers there are (core/timer_wheel.h).
 *
 * In a forked child nothing is armed: timers_after_fork() forgets what was.
 */
#ifndef SOFTHCA_CORE_TIMER_H
#define SOFTHCA_CORE_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/timer_wheel.h"

/* The thread that fires timers, as those that arm one see it: the device thread (progress/progress.h). */
struct timer_thread {
	/** Starts it, if it does not run. Returns 0 or -EAGAIN. Any thread. */
	int (*start)(void);
	/** Wakes it if it would sleep beyond @deadline_ns (CLOCK_MONOTONIC). Any thread. */
	void (*wake_before)(uint64_t deadline_ns);
};

struct timers {
	const struct timer_thread *thread;
	pthread_mutex_t lock;
	pthread_cond_t fired; /* a function has returned */
	struct timer_wheel wheel;
	uint64_t next_ns; /* the device thread looks again until then; 0: it fires, and looks at all before it sleeps */
	struct timer *running;
	pthread_t runner; /* thread of it */
};

/** @thread is to call timers_fire_due(); it is not started yet. */
void timers_init(struct timers *timers, const struct timer_thread *thread);
void timers_after_fork(struct timers *timers);

/** Prepares @timer; @function is called once per arming. */
static inline void timer_init(struct timer *timer, void (*function)(struct timer *timer))
{
	*timer = (struct timer){.function = function};
}

/** Arms (or re-arms) @timer to fire at @deadline_ns. Returns 0, or -EAGAIN (no thread): not armed. */
int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
/** Disarms without waiting: the function may be running. */
void timer_disarm(struct timers *timers, struct timer *timer);
/** Disarms and waits for the end of a running function (unless called from it). */
void timer_cancel(struct timers *timers, struct timer *timer);

/** Fires what is due, on this thread. Returns when to call it again, UINT64_MAX: when one is armed. The device thread. */
uint64_t timers_fire_due(struct timers *timers);

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

#endif
