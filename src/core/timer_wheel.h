/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers by deadline: a hierarchical wheel. Adding and removing take the same time for any number of timers.
 *
 * A tick of 1.024 us is a number of WHEEL_LEVELS digits of WHEEL_DIGIT bits. A timer lies on the level of the highest
 * digit in which its tick differs from `base`, in the slot of its own digit there. Hence the lowest occupied level has
 * the earliest timers, in its first occupied slot. When the time of that slot comes, its timers move to lower levels,
 * at most WHEEL_LEVELS times in the life of each.
 *
 * Timers are returned at their deadline or at most one tick later; those of one tick in no particular order. The wheel
 * owns nothing, and has no lock: that of struct timers covers it.
 */
#ifndef SOFTHCA_CORE_TIMER_WHEEL_H
#define SOFTHCA_CORE_TIMER_WHEEL_H

#include <stdint.h>

#define WHEEL_TICK_BITS 10 /* nanoseconds, as a power of two */
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
	uint64_t soonest; /* tick; lower bound of the slot's timers, with those removed until the slot is empty */
};

struct timer_wheel {
	uint64_t base;                   /* current tick; all earlier timers were returned */
	uint64_t occupied[WHEEL_LEVELS]; /* a bit per slot; may be set for a slot that wheel_remove() emptied */
	struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

/** Adds @timer, which must not be in a wheel; a past deadline is due at once. A wheel starts as all zeros. */
void wheel_add(struct timer_wheel *wheel, struct timer *timer);
/** Removes @timer from its wheel, if any. */
void wheel_remove(struct timer *timer);
/** Removes and returns a timer that is due at @now_ns, or returns NULL. @now_ns must never decrease. */
struct timer *wheel_take_due(struct timer_wheel *wheel, uint64_t now_ns);
/**
 * Returns the time of the next call of wheel_take_due(), in ns: the end of the tick of the earliest deadline, or
 * earlier if a timer was removed; UINT64_MAX: empty. Only after wheel_take_due() has returned NULL.
 */
uint64_t wheel_next_ns(struct timer_wheel *wheel);
/** Empties @wheel and disarms its timers. */
void wheel_clear(struct timer_wheel *wheel);

#endif
