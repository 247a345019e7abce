/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of a device, fired by the device thread (progress/progress.h), which the first one starts. A timer is embedded
 * in its object. Its function runs on the device thread, outside any epoch section, within 1.024 us after its deadline
 * if the thread has a processor. timers.lock is a leaf, but timer_cancel waits for a running function, so it must not
 * be called under a lock which that function takes.
 */
#ifndef SOFTHCA_CORE_TIMER_H
#define SOFTHCA_CORE_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/timer_wheel.h"

/* The thread that fires timers. */
struct timer_thread {
	/** Starts the thread if it does not run. Returns 0 or -EAGAIN. Any thread may call. */
	int (*start)(void);
	/** Wakes the thread if it would sleep beyond @deadline_ns (CLOCK_MONOTONIC). Any thread may call. */
	void (*wake_before)(uint64_t deadline_ns);
};

struct timers {
	const struct timer_thread *thread;
	pthread_mutex_t lock;
	pthread_cond_t fired; /* signalled when a function has returned */
	struct timer_wheel wheel;
	/* time of the device thread's next check; 0: it is firing timers, and checks all of them before it sleeps */
	uint64_t next_ns;
	struct timer *running;
	pthread_t runner; /* thread that executes it */
};

/** @thread, not started yet, will call timers_fire_due(). */
void timers_init(struct timers *timers, const struct timer_thread *thread);
void timers_after_fork(struct timers *timers);

/** @function is called once per arming. */
static inline void timer_init(struct timer *timer, void (*function)(struct timer *timer))
{
	*timer = (struct timer){.function = function};
}

/** Arms (or re-arms) @timer. Returns 0, or -EAGAIN (no thread): not armed. */
int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
/** Disarms without waiting: the function may be running. */
void timer_disarm(struct timers *timers, struct timer *timer);
/** Disarms, and waits for the end of a running function, unless called from it. On return the function will not run. */
void timer_cancel(struct timers *timers, struct timer *timer);

/** Fires due timers. Returns the time of the next call; UINT64_MAX: no timer is armed. On the device thread. */
uint64_t timers_fire_due(struct timers *timers);

/** Returns CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

#endif
