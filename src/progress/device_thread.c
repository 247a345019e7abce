/* SPDX-License-Identifier: BSD-2-Clause */
/* The device thread. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "core/thread.h"
#include "core/tunables.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "progress/arrivals.h"
#include "progress/poll_activity.h"
#include "progress/pollers.h"
#include "progress/progress.h"
#include "progress/substitute_poller.h"

/*
 * consecutive arrivals that woke the thread while the program polled, after which it has the pollers disarmed; chosen
 * for speed
 */
enum { POLL_FOUND = 4 };

static struct {
	pthread_mutex_t lock; /* for starting, and for adding pollers */
	bool started;         /* atomic */
	uint32_t generation;
	uint64_t sleeps_until; /* atomic; CLOCK_MONOTONIC; 0: the thread is awake */
} thread = {.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1};

static __thread bool on_thread __attribute__((tls_model("initial-exec"))); /* this is the device thread */

/* ---- arrivals -------------------------------------------------------------------------------------------------- */

/* A program that polls its memory, and a CQ only occasionally, does not attend to arrivals. */
static void report_attention(struct poll_activity *activity)
{
	if (activity->attends == activity->attention_reported)
		return;
	activity->attention_reported = activity->attends;
	pollers_attend(activity->attends);
}

/*
 * Lets a thread of the program finish a poll that this thread may have interrupted: if this one checked again at once,
 * a program on the same processor could not continue.
 */
static void let_program_finish_poll(void)
{
	const struct timespec time = {.tv_nsec = TUNABLE_POLL_LOOK_NS / 2};

	nanosleep(&time, NULL);
}

/* A wake-up was not for an arrival, but possibly for work that makes no descriptor readable. */
static uint64_t leave_to_substitute(const struct poll_activity *activity, bool woken)
{
	if (woken && progress_begin_polling()) {
		progress_poll_all();
		progress_end_polling();
	}
	arrivals_set_wake(false);
	return poll_activity_substitute_until(activity);
}

/* Returns the time of the next check. */
static uint64_t handle_arrivals(struct poll_activity *activity, enum woken woken)
{
	const struct program_calls calls = pollers_program_calls();
	bool some = calls.polls != activity->calls.polls;
	bool all, polls;

	pollers_set_looks(true);
	polls = poll_activity_program_polls(activity, &calls);
	report_attention(activity);
	if (poll_activity_has_substitute(activity, substitute_state(), woken == WOKEN_BY_ARRIVAL) && !polls)
		return leave_to_substitute(activity, woken == WOKEN);
	arrivals_set_wake(true);
	if (polls) {
		pollers_disarm_repeating();
		activity->found_polling += woken != NOT_WOKEN;
		if (activity->found_polling >= POLL_FOUND)
			pollers_request_disarm(true);
		/* The sender that woke it may have waited in vain for the program. */
		if (woken && progress_begin_polling()) {
			progress_poll_all();
			progress_end_polling();
		} else if (woken) {
			let_program_finish_poll();
		}
		return clock_now_ns() + poll_activity_interval(activity);
	}
	activity->found_polling = 0;
	pollers_request_disarm(false);
	if (!progress_begin_polling()) {
		let_program_finish_poll();
		return clock_now_ns() + TUNABLE_POLL_LOOK_NS;
	}
	all = pollers_arm_and_poll();
	progress_end_polling();
	if (!all)
		return 0;
	/* The program may soon poll more often, so it need not wake this thread each time. */
	if (some)
		return clock_now_ns() + TUNABLE_POLL_LOOK_NS;
	/* The next poll of the program wakes this thread. */
	pollers_set_looks(false);
	return FOR_EVER;
}

static uint64_t fire_timers(void)
{
	uint64_t next = FOR_EVER;

	for (size_t i = 0; i < the_registry.count; i++) {
		uint64_t of_device = timers_fire_due(&the_registry.devices[i].timers);

		if (of_device < next)
			next = of_device;
	}
	return next;
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

static void *device_thread(void *argument)
{
	struct poll_activity activity = {0};
	enum woken woken = NOT_WOKEN;
	uint64_t awake_ns = clock_now_ns();

	(void)argument;
	on_thread = true;
	thread_run_soon();
	for (;;) {
		struct ready_descriptors ready;
		uint64_t until, next;

		__atomic_store_n(&thread.sleeps_until, 0, __ATOMIC_SEQ_CST);
		until = pollers_exist() ? handle_arrivals(&activity, woken) : FOR_EVER;
		/* A timer that is armed from now on wakes the thread, which would otherwise sleep past it. */
		__atomic_store_n(&thread.sleeps_until, until, __ATOMIC_SEQ_CST);
		next = fire_timers();
		if (next < until)
			__atomic_store_n(&thread.sleeps_until, until = next, __ATOMIC_SEQ_CST);
		counter_add(first_device(), COUNTER_THREAD_SLEEPS, 1);
		poll_activity_exclude(&activity, awake_ns, clock_now_ns());
		arrivals_wait(&ready, until);
		awake_ns = clock_now_ns();
		__atomic_store_n(&thread.sleeps_until, 0, __ATOMIC_SEQ_CST);
		woken = arrivals_handle(&ready);
	}
	return NULL;
}

/* Blocks the program's signals in the thread. The lock is held. */
static int device_thread_start(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t id;
	int error;

	thread_signals_to_block(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&id, &attr, device_thread, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? -EAGAIN : 0;
}

bool progress_runs(void)
{
	return __atomic_load_n(&thread.started, __ATOMIC_ACQUIRE);
}

int progress_start(void)
{
	int error = 0;

	if (progress_runs())
		return 0;
	pthread_mutex_lock(&thread.lock);
	if (!thread.started) {
		error = arrivals_open();
		if (!error)
			error = device_thread_start();
		if (!error)
			__atomic_store_n(&thread.started, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&thread.lock);
	return error;
}

bool progress_on_thread(void)
{
	return on_thread;
}

static void device_thread_wake_before(uint64_t deadline_ns)
{
	if (__atomic_load_n(&thread.sleeps_until, __ATOMIC_SEQ_CST) > deadline_ns)
		progress_wake();
}

const struct timer_thread progress_timer_thread = {.start = progress_start, .wake_before = device_thread_wake_before};

/* ---- registering ----------------------------------------------------------------------------------------------- */

int progress_add(struct poller *poller)
{
	int error = progress_start();

	if (error)
		return error;
	pthread_mutex_lock(&thread.lock);
	pollers_add(poller);
	pthread_mutex_unlock(&thread.lock);
	progress_wake();
	return 0;
}

int progress_watch(struct watched_fd *watched, uint32_t events)
{
	int error = progress_start();

	return error ? error : arrivals_watch(watched, events, false);
}

int progress_watch_arrivals(struct watched_fd *watched, uint32_t events)
{
	int error = progress_start();

	return error ? error : arrivals_watch(watched, events, true);
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

uint32_t progress_generation(void)
{
	return __atomic_load_n(&thread.generation, __ATOMIC_RELAXED);
}

void progress_before_fork(void)
{
	pthread_mutex_lock(&thread.lock);
}

void progress_after_fork(bool child)
{
	if (child) {
		substitute_poller_after_fork();
		pollers_after_fork();
		thread.started = false;
		thread.sleeps_until = 0;
		thread.generation++;
	}
	pthread_mutex_unlock(&thread.lock);
}
