/* SPDX-License-Identifier: BSD-2-Clause */
/* Polls by the program and by the library's threads, see pollers.h. */
#include "progress/pollers.h"

#include <sched.h>
#include <time.h>

#include "core/cancellation.h"
#include "core/compiler.h"
#include "core/epoch.h"
#include "core/timer.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "progress/arrivals.h"
#include "progress/progress.h"

/* Values chosen for speed. */
enum {
	/* consecutive polls of the thread between checks of timers */
	POLL_ROUNDS = 64,
	/* attempts to begin polling */
	POLL_TRIES = 10000,
	/* of these, before the processor is yielded */
	POLL_SPINS = 100,
	/* ns to wait for another thread's poll: longer than any takes on a processor */
	POLL_WAIT_NS = 500000000,
	/* packets that a thread sends before it polls */
	POLL_AFTER_SENDS = 4,
	/* ns between checks for its end */
	POLL_WAIT_NAP_NS = 100000,
};

uint32_t progress_pollers;

__thread uint32_t progress_unpolled __attribute__((tls_model("initial-exec")));

/* All atomic, but `busy`. */
static struct {
	struct poller *first; /* the list grows only */
	uint32_t polling;     /* 1: a thread calls the pollers */
	uint32_t polls;       /* polls by the program */
	uint32_t naps;        /* times that the program was about to sleep */
	bool disarm;          /* the program must disarm the pollers */
	bool looks;           /* the device thread will check again soon */
	struct poller *busy;  /* the first that is not idle; of the thread that polls */
	uint32_t attended;    /* threads that poll on behalf of the program */
} pollers;

static struct poller *poller_first(void)
{
	return __atomic_load_n(&pollers.first, __ATOMIC_ACQUIRE);
}

/* ---- polling --------------------------------------------------------------------------------------------------- */

bool progress_begin_polling(void)
{
	return !__atomic_load_n(&pollers.polling, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&pollers.polling, 1, __ATOMIC_ACQUIRE);
}

void progress_end_polling(void)
{
	__atomic_store_n(&pollers.polling, 0, __ATOMIC_RELEASE);
}

bool (*progress_in_run)(bool (*poll)(struct run *run));

static bool poll_each(struct run *run)
{
	bool found = false;

	for (struct poller *poller = poller_first(); poller; poller = poller->next)
		found |= poller->poll(poller, run);
	return found;
}

bool progress_poll_all(void)
{
	bool found;

	arrivals_begin_poll();
	epoch_enter();
	found = progress_in_run(poll_each);
	epoch_leave();
	return found;
}

void progress_arm_all(bool armed)
{
	for (struct poller *poller = poller_first(); poller; poller = poller->next) {
		if (__atomic_exchange_n(&poller->armed, armed, __ATOMIC_RELAXED) == armed && !poller->repeats)
			continue;
		poller->arm(poller, armed);
	}
}

static bool poller_is_idle(struct poller *poller)
{
	return poller->idle && poller->idle(poller);
}

/* Sets pollers.busy. Returns true if a poll would find nothing, as for most polls of a waiting program. In an epoch section. */
static bool all_idle(void)
{
	struct poller *poller = poller_first();

	while (poller && poller_is_idle(poller))
		poller = poller->next;
	pollers.busy = poller;
	return !poller;
}

static bool poll_busy(struct run *run)
{
	struct poller *poller = pollers.busy;
	bool found = poller->poll(poller, run);

	while ((poller = poller->next))
		found |= !poller_is_idle(poller) && poller->poll(poller, run);
	return found;
}

/* In an epoch section. */
static __attribute__((noinline)) void program_begins_to_poll(void)
{
	/* The device thread must check for this thread's polling. */
	if (!__atomic_load_n(&pollers.looks, __ATOMIC_RELAXED)) {
		__atomic_store_n(&pollers.looks, true, __ATOMIC_RELAXED);
		progress_wake();
	}
	if (__atomic_load_n(&pollers.disarm, __ATOMIC_RELAXED)) {
		__atomic_store_n(&pollers.disarm, false, __ATOMIC_RELAXED);
		progress_arm_all(false);
	}
}

/* In an epoch section. */
static bool poll_for_program(void)
{
	if (!progress_in_run(poll_busy))
		return false;
	progress_worked(1);
	counter_add(first_device(), COUNTER_PROGRAM_PACKETS, 1);
	return true;
}

/* Combines progress_begin_polling() and epoch_enter() in one locked instruction. */
bool progress_poll(void)
{
	bool found = false;

	progress_unpolled = 0;
	if (__atomic_load_n(&pollers.polling, __ATOMIC_RELAXED))
		return false;
	if (!epoch_enter_with_exchange(&pollers.polling)) {
		__atomic_store_n(&pollers.polls, pollers.polls + 1, __ATOMIC_RELAXED);
		if (unlikely(!__atomic_load_n(&pollers.looks, __ATOMIC_RELAXED) ||
			     __atomic_load_n(&pollers.disarm, __ATOMIC_RELAXED)))
			program_begins_to_poll();
		if (!all_idle())
			found = poll_for_program();
		progress_end_polling();
	}
	epoch_leave();
	return found;
}

void progress_after_sending(void)
{
	if (progress_unpolled >= POLL_AFTER_SENDS)
		progress_poll();
}

bool pollers_poll_to_the_end(void)
{
	for (int i = 0; i < POLL_ROUNDS; i++) {
		if (!progress_poll_all())
			return true;
		counter_add(first_device(), COUNTER_THREAD_PACKETS, 1);
	}
	return false;
}

bool pollers_arm_and_poll(void)
{
	if (!pollers_poll_to_the_end())
		return false;
	progress_arm_all(true);
	return pollers_poll_to_the_end();
}

/* Polls for arrivals that do not make a descriptor readable. */
static bool poll_restless(struct run *run)
{
	bool found = false;

	for (struct poller *poller = poller_first(); poller; poller = poller->next)
		if (!poller->rest)
			found |= poller->poll(poller, run);
	return found;
}

static bool restless_are_idle(void)
{
	bool idle = true;

	for (struct poller *poller = poller_first(); poller && idle; poller = poller->next)
		idle = poller->rest || poller_is_idle(poller);
	return idle;
}

bool progress_rest(bool stays)
{
	bool found = true;

	for (struct poller *poller = poller_first(); poller; poller = poller->next)
		if (poller->rest)
			poller->rest(poller, stays);
	for (int i = 0; i < POLL_ROUNDS && found; i++) {
		epoch_enter();
		found = !restless_are_idle() && progress_in_run(poll_restless);
		epoch_leave();
	}
	return !found;
}

bool progress_begin_polling_soon(void)
{
	for (int i = 0; i < POLL_TRIES; i++) {
		if (progress_begin_polling())
			return true;
		if (i % POLL_SPINS == POLL_SPINS - 1)
			sched_yield();
		else
			pause_cpu();
	}
	return false;
}

bool progress_look(void)
{
	bool all;

	if (!poller_first())
		return true;
	if (!progress_begin_polling_soon())
		return false;
	all = pollers_poll_to_the_end();
	progress_end_polling();
	return all;
}

void progress_wait_for_poll(void)
{
	WITHOUT_CANCELLATION;
	const struct timespec nap = {.tv_nsec = POLL_WAIT_NAP_NS};

	for (uint64_t i = 0; i < POLL_WAIT_NS / POLL_WAIT_NAP_NS; i++) {
		if (progress_begin_polling()) {
			progress_end_polling();
			return;
		}
		nanosleep(&nap, NULL);
	}
}

void progress_before_sleep(void)
{
	WITHOUT_CANCELLATION;
	bool all;

	__atomic_add_fetch(&pollers.naps, 1, __ATOMIC_RELAXED);
	/* A thread that polls arms the pollers itself. */
	if (!progress_begin_polling()) {
		progress_wake();
		return;
	}
	progress_arm_all(true);
	/* Polls to the end, so that the other side sees that nothing it sent is left. */
	all = progress_rest(false);
	progress_end_polling();
	if (!all)
		progress_wake();
}

void progress_attend_begin(void)
{
	__atomic_add_fetch(&pollers.attended, 1, __ATOMIC_RELAXED);
}

void progress_attend_end(void)
{
	__atomic_sub_fetch(&pollers.attended, 1, __ATOMIC_RELAXED);
	if (progress_has_pollers())
		progress_before_sleep();
}

bool progress_poll_until(const uint32_t *count, uint32_t before, uint64_t ns)
{
	WITHOUT_CANCELLATION;
	uint64_t end_ns = clock_now_ns() + ns;
	bool changed;

	if (!progress_has_pollers())
		return false;
	__atomic_add_fetch(&pollers.attended, 1, __ATOMIC_RELAXED);
	/* Otherwise each arrival also wakes the device thread, which takes the processor from this one. */
	pollers_request_disarm(true);
	do {
		progress_poll();
		changed = __atomic_load_n(count, __ATOMIC_ACQUIRE) != before;
	} while (!changed && clock_now_ns() < end_ns);
	if (changed)
		__atomic_sub_fetch(&pollers.attended, 1, __ATOMIC_RELAXED);
	else
		progress_attend_end();
	return changed;
}

/* ---- for the device thread ------------------------------------------------------------------------------------- */

void pollers_add(struct poller *poller)
{
	poller->armed = true;
	poller->next = pollers.first;
	__atomic_store_n(&pollers.first, poller, __ATOMIC_RELEASE);
	__atomic_store_n(&progress_pollers, progress_pollers + 1, __ATOMIC_RELEASE);
}

bool pollers_exist(void)
{
	return poller_first() != NULL;
}

static uint32_t works_of_program(void)
{
	uint32_t sum = 0;

	for (const struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next)
		if (slot != epoch_this_thread)
			sum += __atomic_load_n(&slot->works, __ATOMIC_RELAXED);
	return sum;
}

struct program_calls pollers_program_calls(void)
{
	return (struct program_calls){
		.polls = __atomic_load_n(&pollers.polls, __ATOMIC_RELAXED),
		.naps = __atomic_load_n(&pollers.naps, __ATOMIC_RELAXED),
		.works = works_of_program(),
		.attended = __atomic_load_n(&pollers.attended, __ATOMIC_RELAXED),
	};
}

void pollers_attend(bool attends)
{
	for (struct poller *poller = poller_first(); poller; poller = poller->next)
		if (poller->attend)
			poller->attend(poller, attends);
}

void pollers_disarm_repeating(void)
{
	for (struct poller *poller = poller_first(); poller; poller = poller->next)
		if (poller->repeats && __atomic_exchange_n(&poller->armed, false, __ATOMIC_RELAXED))
			poller->arm(poller, false);
}

void pollers_request_disarm(bool disarm)
{
	__atomic_store_n(&pollers.disarm, disarm, __ATOMIC_RELAXED);
}

void pollers_set_looks(bool looks)
{
	__atomic_store_n(&pollers.looks, looks, __ATOMIC_SEQ_CST);
}

void pollers_after_fork(void)
{
	pollers.first = NULL;
	progress_pollers = 0;
	pollers.looks = false;
	pollers.attended = 0;
	pollers.polling = 0;
}
