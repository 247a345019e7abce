/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbell records that are looked at, see watch.h. */
#include "hca/watch.h"

#include <stddef.h>

enum {
	PAUSE_MIN_US = 10,
	PAUSE_MAX_US = 1000, /* doubled from one look to the next */
};

/* True if a record has changed since the last look. */
static bool changed(struct watch *watch)
{
	bool result = false;

	for (uint32_t i = 0; i < watch->count; i++) {
		uint32_t now = __atomic_load_n(&watch->records[i], __ATOMIC_ACQUIRE);

		result |= now != watch->seen[i];
		watch->seen[i] = now;
	}
	return result;
}

static int look_again(struct watch *watch)
{
	return timer_arm(watch->timers, &watch->timer, clock_now_ns() + watch->pause_us * UINT64_C(1000));
}

static void look(struct timer *timer)
{
	struct watch *watch = (struct watch *)((char *)timer - offsetof(struct watch, timer));

	if (changed(watch)) {
		watch->pause_us = PAUSE_MIN_US;
		watch->rung(watch);
	} else if (watch->pause_us < PAUSE_MAX_US) {
		watch->pause_us *= 2;
	}
	look_again(watch);
}

int watch_start(struct watch *watch, struct timers *timers, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch))
{
	int error;

	if (__atomic_exchange_n(&watch->started, true, __ATOMIC_ACQ_REL))
		return 0;
	timer_init(&watch->timer, look);
	watch->timers = timers;
	watch->records = records;
	watch->count = count;
	changed(watch);
	watch->pause_us = PAUSE_MIN_US;
	watch->rung = rung;
	error = look_again(watch);
	if (error) {
		timer_cancel(timers, &watch->timer);
		__atomic_store_n(&watch->started, false, __ATOMIC_RELEASE);
	}
	return error;
}

void watch_stop(struct watch *watch)
{
	if (__atomic_load_n(&watch->started, __ATOMIC_ACQUIRE))
		timer_cancel(watch->timers, &watch->timer);
}
