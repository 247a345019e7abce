/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer wheel. */
#include "core/timer_wheel.h"

#include <stdbool.h>
#include <stddef.h>

#define DIGIT_MASK (WHEEL_SLOTS - 1)

/* Returns the first tick that does not begin before @deadline_ns; for deadlines in the very last tick, that tick. */
static uint64_t tick_of_deadline(uint64_t deadline_ns)
{
	uint64_t last = UINT64_MAX >> WHEEL_TICK_BITS;
	uint64_t tick = deadline_ns >> WHEEL_TICK_BITS;

	return tick < last && deadline_ns & ((1u << WHEEL_TICK_BITS) - 1) ? tick + 1 : tick;
}

static unsigned int wheel_level_of(const struct timer_wheel *wheel, uint64_t tick)
{
	uint64_t differs = tick ^ wheel->base;

	return differs ? (63 - (unsigned int)__builtin_clzll(differs)) / WHEEL_DIGIT : 0;
}

static unsigned int tick_digit(uint64_t tick, unsigned int level)
{
	return tick >> (level * WHEEL_DIGIT) & DIGIT_MASK;
}

void wheel_add(struct timer_wheel *wheel, struct timer *timer)
{
	uint64_t tick = tick_of_deadline(timer->deadline_ns);
	struct wheel_slot *slot;
	unsigned int level;

	if (tick < wheel->base)
		tick = wheel->base;
	level = wheel_level_of(wheel, tick);
	slot = &wheel->slots[level][tick_digit(tick, level)];
	if (!slot->first || tick < slot->soonest)
		slot->soonest = tick;
	wheel->occupied[level] |= UINT64_C(1) << tick_digit(tick, level);
	timer->next = slot->first;
	if (timer->next)
		timer->next->link = &timer->next;
	timer->link = &slot->first;
	slot->first = timer;
}

void wheel_remove(struct timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
}

/* Returns the earliest slot with a timer, or NULL. Clears the bits of slots that wheel_remove() emptied. */
static struct wheel_slot *wheel_earliest_slot(struct timer_wheel *wheel, unsigned int *level, unsigned int *number)
{
	for (*level = 0; *level < WHEEL_LEVELS; ++*level)
		while (wheel->occupied[*level]) {
			struct wheel_slot *slot;

			*number = (unsigned int)__builtin_ctzll(wheel->occupied[*level]);
			slot = &wheel->slots[*level][*number];
			if (slot->first)
				return slot;
			wheel->occupied[*level] &= ~(UINT64_C(1) << *number);
		}
	return NULL;
}

/* Returns the first tick of a slot: its digit on its level, the digits of `base` above, zeros below. */
static uint64_t slot_first_tick(const struct timer_wheel *wheel, unsigned int level, unsigned int number)
{
	uint64_t above = ~UINT64_C(0) << (level * WHEEL_DIGIT);

	return (wheel->base & above & ~((uint64_t)DIGIT_MASK << (level * WHEEL_DIGIT))) |
	       (uint64_t)number << (level * WHEEL_DIGIT);
}

/*
 * Moves the timers of a slot whose time has come to lower levels: they differ from the new base in lower digits only.
 */
static void move_down(struct timer_wheel *wheel, struct wheel_slot *slot)
{
	struct timer *timer = slot->first;

	slot->first = NULL;
	while (timer) {
		struct timer *next = timer->next;

		wheel_add(wheel, timer);
		timer = next;
	}
}

struct timer *wheel_take_due(struct timer_wheel *wheel, uint64_t now_ns)
{
	uint64_t now = now_ns >> WHEEL_TICK_BITS;
	unsigned int level, number;
	struct wheel_slot *slot;

	while ((slot = wheel_earliest_slot(wheel, &level, &number)) && slot_first_tick(wheel, level, number) <= now) {
		/* Timers in other slots are later, so their slots stay valid for the new base. */
		wheel->base = slot_first_tick(wheel, level, number);
		if (!level) {
			struct timer *timer = slot->first;

			wheel_remove(timer);
			return timer;
		}
		move_down(wheel, slot);
	}
	if (now > wheel->base)
		wheel->base = now;
	return NULL;
}

uint64_t wheel_next_ns(struct timer_wheel *wheel)
{
	unsigned int level, number;
	struct wheel_slot *slot = wheel_earliest_slot(wheel, &level, &number);

	return slot ? slot->soonest << WHEEL_TICK_BITS : UINT64_MAX;
}

void wheel_clear(struct timer_wheel *wheel)
{
	unsigned int level, number;
	struct wheel_slot *slot;

	while ((slot = wheel_earliest_slot(wheel, &level, &number)))
		while (slot->first)
			wheel_remove(slot->first);
	*wheel = (struct timer_wheel){0};
}
