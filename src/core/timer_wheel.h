/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers by deadline: a hierarchical wheel. Adding and removing take the same time however many there are, so each of 10^5
 * queue pairs can have an acknowledgement timer.
 *
 * Time is counted in ticks of 1.024 us, and a tick is a number of WHEEL_LEVELS digits of WHEEL_DIGIT bits. A timer lies on
 * the level of the highest digit in which its tick differs from `base`, in the slot of its own digit there. Hence the
 * lowest level that is occupied has the earliest timers, in its first occupied slot; when that slot's time has come, its
 * timers move to lower levels, at most WHEEL_LEVELS times in the life of each.
 *
 * No timer is given out before its deadline, and each at most one tick later than asked for. Those of one tick come in no
 * particular order.
 *
 * The wheel owns nothing: timers are linked through themselves. It has no lock; that of struct timers covers it.
 */
#ifndef SOFTHCA_CORE_TIMER_WHEEL_H
#define SOFTHCA_CORE_TIMER_WHEEL_H

#include <stdint.h>

#define WHEEL_TICK_BITS 10 /* of nanoseconds */
#define WHEEL_DIGIT 6
#define WHEEL_SLOTS (1 << WHEEL_DIGIT)
#define WHEEL_LEVELS ((64 - WHEEL_TICK_BITS + WHEEL_DIGIT - 1) / WHEEL_DIGIT)

struct timer {
	struct timer *next, **link; /* in a slot of the wheel; link NULL: not armed */
	uint64_t deadline_ns;       /* CLOCK_MONOTONIC */
	void (*function)(struct timer *timer);
};

struct wheel_slot {
	struct timer *first;
	uint64_t soonest; /* tick; no timer of the slot is earlier; those that were removed count until it is empty */
};

struct timer_wheel {
	uint64_t base;                   /* tick that has come; all earlier timers were given out */
	uint64_t occupied[WHEEL_LEVELS]; /* a bit per slot; may be set for one that was emptied by wheel_remove() */
	struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

/** Adds @timer, which is in no wheel, by its deadline_ns; one that has passed is due at once. A wheel is zero at first. */
void wheel_add(struct timer_wheel *wheel, struct timer *timer);
/** Takes @timer out of its wheel, if it is in one. */
void wheel_remove(struct timer *timer);
/** Takes out one timer whose deadline is not after @now_ns, or returns NULL. @now_ns: never less than the time before. */
struct timer *wheel_take_due(struct timer_wheel *wheel, uint64_t now_ns);
/**
 * When wheel_take_due() is to be asked again, in nanoseconds: the end of the tick of the earliest deadline, or earlier if a
 * timer was removed; UINT64_MAX: the wheel is empty. Only after wheel_take_due() has returned NULL.
 */
uint64_t wheel_next_ns(struct timer_wheel *wheel);
/** Empties @wheel: its timers are in none. */
void wheel_clear(struct timer_wheel *wheel);

#endif
