/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers of the device, and the one thread that runs them. The thread exists only once a timer was armed; it blocks
 * all signals, sleeps without timers, and holds no lock while a timer fires.
 *
 * A timer is embedded in its object. Its function runs on the device thread, inside no epoch section. After
 * timer_cancel() returned, the function does not run and will not run. Locks: timers.lock is a leaf, except that
 * timer_cancel waits for a running function, so it must not be called under a lock which that function takes.
 *
 * In a forked child there is no thread: timers_after_fork() forgets what was armed.
 */
#ifndef SOFTHCA_HCA_TIMER_H
#define SOFTHCA_HCA_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct timer {
	struct timer *next, **link; /* in the list sorted by deadline; link NULL: not armed */
	uint64_t deadline_ns;       /* CLOCK_MONOTONIC */
	void (*function)(struct timer *timer);
};

struct timers {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a nearer deadline, the end of a running function, or stopping */
	struct timer *first;
	struct timer *running;
	pthread_t thread;
	bool started;
};

void timers_init(struct timers *timers);
void timers_after_fork(struct timers *timers);

/** Prepares @timer; @function is called once per arming. */
static inline void timer_init(struct timer *timer, void (*function)(struct timer *timer))
{
	*timer = (struct timer){.function = function};
}

/** Arms (or re-arms) @timer to fire at @deadline_ns. Starts the thread at the first use. Returns 0, or -EAGAIN: not armed. */
int timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
/** Disarms without waiting: the function may be running. */
void timer_disarm(struct timers *timers, struct timer *timer);
/** Disarms and waits for the end of a running function (unless called from it). */
void timer_cancel(struct timers *timers, struct timer *timer);

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

#endif
