/* SPDX-License-Identifier: BSD-2-Clause */
/* Pollers and the device thread. */
#include "progress/progress.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/compiler.h"
#include "core/descriptor.h"
#include "core/epoch.h"
#include "core/thread.h"
#include "core/tunables.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "progress/poll_activity.h"
#include "progress/progress_parts.h"
#include "progress/substitute_poller.h"

/* Values chosen for speed. */
enum {
	/*
	 * consecutive arrivals that woke the thread while the program polled, after which it has the pollers disarmed
	 */
	POLL_FOUND = 4,
	/* descriptors handled per wake-up */
	EPOLL_EVENTS = 16,
	/* consecutive polls of the thread between checks of timers */
	POLL_ROUNDS = 64,
	/* attempts to begin polling */
	POLL_TRIES = 10000,
	/* of these, before the processor is yielded */
	POLL_SPINS = 100,
	/* ns to wait for another thread's poll: longer than any takes on a processor */
	POLL_WAIT_NS = 500000000,
	/* ns between checks for its end */
	POLL_WAIT_NAP_NS = 100000,
};

#define FOR_EVER UINT64_MAX

uint32_t progress_pollers;

static struct {
	pthread_mutex_t lock;      /* for starting, the list of pollers, `running` */
	pthread_cond_t ready_done; /* a ready function has returned */
	struct poller *pollers;    /* atomic; grows only */
	struct watched_fd *running;
	uint32_t removals; /* descriptors removed so far; results from before a removal may be obsolete */
	pthread_t thread;
	bool started;
	bool no_pwait2;          /* used by the thread only: the kernel refuses epoll_pwait2(2) */
	int epoll;               /* the thread sleeps on it; includes `arrivals` */
	int arrivals;            /* also an epoll descriptor; a substitute sleeps on it */
	uint32_t drained;        /* atomic; number of its descriptors with a drain function */
	bool sleeps_on_arrivals; /* used by the thread only: it currently sleeps on arrivals, too */
	int wake;                /* eventfd */
	uint32_t generation;
	uint64_t sleeps_until; /* atomic; CLOCK_MONOTONIC; 0: the thread is awake */
	uint32_t polling;      /* atomic; 1: a thread calls the pollers */
	uint32_t polls;        /* atomic; polls by the program */
	uint32_t naps;         /* atomic; times that the program was about to sleep */
	/* atomic; 1: the program must disarm the pollers */
	uint32_t disarm;
	uint32_t attended; /* atomic; threads that poll on behalf of the program */
	uint32_t looks;    /* atomic; 1: the thread will check again soon */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER,
	      .ready_done = PTHREAD_COND_INITIALIZER,
	      .epoll = -1,
	      .arrivals = -1,
	      .wake = -1,
	      .generation = 1};

static __thread bool on_thread __attribute__((tls_model("initial-exec"))); /* this is the device thread */

static void drain_arrivals(struct watched_fd *watched, uint32_t events);

/* Entry in `epoll` for progress.arrivals. */
static struct watched_fd arrivals = {.ready = drain_arrivals};

static struct poller *first_poller(void)
{
	return __atomic_load_n(&progress.pollers, __ATOMIC_ACQUIRE);
}

/* ---- polling --------------------------------------------------------------------------------------------------- */

bool progress_begin_polling(void)
{
	return !__atomic_load_n(&progress.polling, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&progress.polling, 1, __ATOMIC_ACQUIRE);
}

void progress_end_polling(void)
{
	__atomic_store_n(&progress.polling, 0, __ATOMIC_RELEASE);
}

bool (*progress_in_run)(bool (*poll)(struct run *run));

static bool poll_each(struct run *run)
{
	bool found = false;

	for (struct poller *poller = first_poller(); poller; poller = poller->next)
		found |= poller->poll(poller, run);
	return found;
}

bool progress_poll_all(void)
{
	bool found;

	epoch_enter();
	found = progress_in_run(poll_each);
	epoch_leave();
	return found;
}

/* Only between progress_begin_polling() and progress_end_polling(), as for the next two functions. */
void progress_arm_all(bool armed)
{
	for (struct poller *poller = first_poller(); poller; poller = poller->next) {
		if (__atomic_exchange_n(&poller->armed, armed, __ATOMIC_RELAXED) == armed && !poller->repeats)
			continue;
		poller->arm(poller, armed);
	}
}

/* Returns true if a poll would find nothing, as for most polls of a waiting program. In an epoch section. */
static bool all_idle(void)
{
	bool idle = true;

	for (struct poller *poller = first_poller(); poller && idle; poller = poller->next)
		idle = poller->idle && poller->idle(poller);
	return idle;
}

/* In an epoch section. */
static bool poll_for_program(void)
{
	bool found;

	/* The device thread must check for this thread's polling. */
	if (__builtin_expect(!__atomic_load_n(&progress.looks, __ATOMIC_RELAXED), 0)) {
		__atomic_store_n(&progress.looks, 1, __ATOMIC_RELAXED);
		progress_wake();
	}
	if (__builtin_expect(__atomic_load_n(&progress.disarm, __ATOMIC_RELAXED), 0)) {
		__atomic_store_n(&progress.disarm, 0, __ATOMIC_RELAXED);
		progress_arm_all(false);
	}
	found = progress_in_run(poll_each);
	if (!found)
		return false;
	progress_worked(1);
	counter_add(first_device(), COUNTER_PROGRAM_PACKETS, 1);
	return true;
}

/* Combines progress_begin_polling() and epoch_enter() in one locked instruction. */
bool progress_poll(void)
{
	bool found = false;

	if (__atomic_load_n(&progress.polling, __ATOMIC_RELAXED))
		return false;
	if (!epoch_enter_with_exchange(&progress.polling)) {
		__atomic_store_n(&progress.polls, progress.polls + 1, __ATOMIC_RELAXED);
		if (!__atomic_load_n(&progress.looks, __ATOMIC_RELAXED) ||
		    __atomic_load_n(&progress.disarm, __ATOMIC_RELAXED) || !all_idle())
			found = poll_for_program();
		progress_end_polling();
	}
	epoch_leave();
	return found;
}

/* Polls until nothing is left, within limits, since timers are due as well. Returns false if something may be left. */
static bool poll_to_the_end(void)
{
	for (int i = 0; i < POLL_ROUNDS; i++) {
		if (!progress_poll_all())
			return true;
		counter_add(first_device(), COUNTER_THREAD_PACKETS, 1);
	}
	return false;
}

/* Polls for arrivals that do not make a descriptor readable. */
static bool poll_restless(struct run *run)
{
	bool found = false;

	for (struct poller *poller = first_poller(); poller; poller = poller->next)
		if (!poller->rest)
			found |= poller->poll(poller, run);
	return found;
}

static bool restless_are_idle(void)
{
	bool idle = true;

	for (struct poller *poller = first_poller(); poller && idle; poller = poller->next)
		idle = poller->rest || (poller->idle && poller->idle(poller));
	return idle;
}

bool progress_rest(bool stays)
{
	bool found = true;

	for (struct poller *poller = first_poller(); poller; poller = poller->next)
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

	if (!first_poller())
		return true;
	if (!progress_begin_polling_soon())
		return false;
	all = poll_to_the_end();
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

	__atomic_add_fetch(&progress.naps, 1, __ATOMIC_RELAXED);
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
	__atomic_add_fetch(&progress.attended, 1, __ATOMIC_RELAXED);
}

void progress_attend_end(void)
{
	__atomic_sub_fetch(&progress.attended, 1, __ATOMIC_RELAXED);
	if (progress_has_pollers())
		progress_before_sleep();
}

/* ---- the thread ------------------------------------------------------------------------------------------------ */

/* Reason why a sleep ended; all except NOT_WOKEN: a descriptor. */
enum woken { NOT_WOKEN, WOKEN, WOKEN_BY_ARRIVAL };

static uint32_t works_of_program(void)
{
	uint32_t sum = 0;

	for (const struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next)
		if (slot != epoch_this_thread)
			sum += __atomic_load_n(&slot->works, __ATOMIC_RELAXED);
	return sum;
}

static struct program_calls program_calls_now(void)
{
	return (struct program_calls){
		.polls = __atomic_load_n(&progress.polls, __ATOMIC_RELAXED),
		.naps = __atomic_load_n(&progress.naps, __ATOMIC_RELAXED),
		.works = works_of_program(),
		.attended = __atomic_load_n(&progress.attended, __ATOMIC_RELAXED),
	};
}

/* A program that polls its memory, and a CQ only occasionally, does not attend to arrivals. */
static void report_attention(struct poll_activity *activity)
{
	if (activity->attends == activity->attention_reported)
		return;
	activity->attention_reported = activity->attends;
	for (struct poller *poller = first_poller(); poller; poller = poller->next)
		if (poller->attend)
			poller->attend(poller, activity->attends);
}

static void disarm_repeatedly(void)
{
	for (struct poller *poller = first_poller(); poller; poller = poller->next)
		/* A program that starts to poll may do the same now. */
		if (poller->repeats && __atomic_exchange_n(&poller->armed, false, __ATOMIC_RELAXED)) {
			poller->arm(poller, false);
		}
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

/* Returns false if something may be left. */
static bool arm_and_poll(void)
{
	if (!poll_to_the_end())
		return false;
	progress_arm_all(true);
	return poll_to_the_end();
}

static void set_sleeps_on_arrivals(bool minds)
{
	struct epoll_event event = {.events = minds ? EPOLLIN : 0, .data.ptr = &arrivals};

	if (progress.sleeps_on_arrivals == minds)
		return;
	progress.sleeps_on_arrivals = minds;
	epoll_ctl(progress.epoll, EPOLL_CTL_MOD, progress.arrivals, &event);
}

/* A wake-up was not for an arrival, but possibly for work that makes no descriptor readable. */
static uint64_t leave_to_substitute(const struct poll_activity *activity, bool woken)
{
	if (woken && progress_begin_polling()) {
		progress_poll_all();
		progress_end_polling();
	}
	set_sleeps_on_arrivals(false);
	return poll_activity_substitute_until(activity);
}

/* Returns the time of the next check. */
static uint64_t handle_arrivals(struct poll_activity *activity, enum woken woken)
{
	const struct program_calls calls = program_calls_now();
	bool some = calls.polls != activity->calls.polls;
	bool all, polls;

	__atomic_store_n(&progress.looks, 1, __ATOMIC_SEQ_CST);
	polls = poll_activity_program_polls(activity, &calls);
	report_attention(activity);
	if (poll_activity_has_substitute(activity, substitute_state(), woken == WOKEN_BY_ARRIVAL) && !polls)
		return leave_to_substitute(activity, woken == WOKEN);
	set_sleeps_on_arrivals(true);
	if (polls) {
		disarm_repeatedly();
		activity->found_polling += woken != NOT_WOKEN;
		if (activity->found_polling >= POLL_FOUND)
			__atomic_store_n(&progress.disarm, 1, __ATOMIC_RELAXED);
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
	__atomic_store_n(&progress.disarm, 0, __ATOMIC_RELAXED);
	if (!progress_begin_polling()) {
		let_program_finish_poll();
		return clock_now_ns() + TUNABLE_POLL_LOOK_NS;
	}
	all = arm_and_poll();
	progress_end_polling();
	if (!all)
		return 0;
	/* The program may soon poll more often, so it need not wake this thread each time. */
	if (some)
		return clock_now_ns() + TUNABLE_POLL_LOOK_NS;
	/* The next poll of the program wakes this thread. */
	__atomic_store_n(&progress.looks, 0, __ATOMIC_SEQ_CST);
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

int progress_arrivals(void)
{
	return __atomic_load_n(&progress.started, __ATOMIC_ACQUIRE) ? progress.arrivals : -1;
}

/* Removed descriptors are not found any more; those found stay valid until the section ends. */
void progress_drain(void)
{
	struct epoll_event events[EPOLL_EVENTS];
	int count;

	if (!__atomic_load_n(&progress.drained, __ATOMIC_RELAXED) || !descriptor_check(progress.arrivals))
		return;
	epoch_enter();
	count = epoll_wait(progress.arrivals, events, EPOLL_EVENTS, 0);
	for (int i = 0; i < count; i++) {
		struct watched_fd *watched = events[i].data.ptr;

		if (watched)
			watched->drain(watched);
	}
	epoch_leave();
}

static void drain_arrivals(struct watched_fd *watched, uint32_t events)
{
	(void)watched;
	(void)events;
	progress_drain();
}

/*
 * Calls `ready` of @watched, unless a descriptor, possibly the same one, was removed after this one was found ready.
 * Those not called will be found ready again.
 */
static bool call_ready(struct watched_fd *watched, uint32_t events, uint32_t removals)
{
	pthread_mutex_lock(&progress.lock);
	if (progress.removals != removals) {
		pthread_mutex_unlock(&progress.lock);
		return false;
	}
	progress.running = watched;
	pthread_mutex_unlock(&progress.lock);
	watched->ready(watched, events);
	pthread_mutex_lock(&progress.lock);
	progress.running = NULL;
	pthread_cond_broadcast(&progress.ready_done);
	pthread_mutex_unlock(&progress.lock);
	return true;
}

static uint32_t removals_now(void)
{
	uint32_t removals;

	pthread_mutex_lock(&progress.lock);
	removals = progress.removals;
	pthread_mutex_unlock(&progress.lock);
	return removals;
}

/*
 * Before Linux 5.11, and in older sandboxes, there is only epoll_wait(2), which counts milliseconds. ppoll(2) counts
 * nanoseconds, and sees an epoll descriptor as readable when one of its descriptors is ready.
 */
static int wait_without_pwait2(const struct timespec *left, struct epoll_event *events)
{
	struct pollfd readable = {.fd = progress.epoll, .events = POLLIN};

	if (ppoll(&readable, 1, left, NULL) <= 0)
		return 0;
	return epoll_wait(progress.epoll, events, EPOLL_EVENTS, 0);
}

/* glibc has epoll_pwait2(2) from 2.35 on, musl does not. */
static int wait_with_pwait2(const struct timespec *left, struct epoll_event *events)
{
#ifdef SYS_epoll_pwait2
	return (int)syscall(SYS_epoll_pwait2, progress.epoll, events, EPOLL_EVENTS, left, NULL, (size_t)0);
#else
	(void)left;
	(void)events;
	errno = ENOSYS;
	return -1;
#endif
}

static int wait_once(uint64_t until_ns, struct epoll_event *events)
{
	uint64_t now_ns = clock_now_ns();
	struct timespec duration = {0}, *left = until_ns == FOR_EVER ? NULL : &duration;
	int count;

	if (until_ns > now_ns && left) {
		duration.tv_sec = (time_t)((until_ns - now_ns) / 1000000000u);
		duration.tv_nsec = (long)((until_ns - now_ns) % 1000000000u);
	}
	if (progress.no_pwait2)
		return wait_without_pwait2(left, events);
	count = wait_with_pwait2(left, events);
	if (count < 0 && errno != EINTR) {
		progress.no_pwait2 = true;
		return wait_without_pwait2(left, events);
	}
	return count;
}

/* Returns false if the program has closed the thread's descriptors. */
static bool has_descriptors(void)
{
	return descriptor_check(progress.epoll) && descriptor_check(progress.arrivals) &&
	       descriptor_check(progress.wake);
}

/* Checks periodically, because nothing wakes this thread if another one closes the descriptors. */
static int wait_for_descriptors(uint64_t until_ns, struct epoll_event *events)
{
	uint64_t look_ns;
	int count;

	do {
		look_ns = clock_now_ns() + TUNABLE_DESCRIPTOR_LOOK_NS;
		count = wait_once(until_ns < look_ns ? until_ns : look_ns, events);
	} while (!count && look_ns < until_ns && has_descriptors());
	return count;
}

static enum woken nap_without_descriptors(void)
{
	const struct timespec time = {.tv_nsec = TUNABLE_DESCRIPTOR_NAP_NS};

	nanosleep(&time, NULL);
	__atomic_store_n(&progress.sleeps_until, 0, __ATOMIC_SEQ_CST);
	return WOKEN_BY_ARRIVAL;
}

static enum woken wait_for_events(uint64_t until_ns)
{
	struct epoll_event events[EPOLL_EVENTS];
	uint32_t removals = removals_now();
	enum woken woken;
	eventfd_t ignored;
	int count;

	if (!has_descriptors())
		return nap_without_descriptors();
	count = wait_for_descriptors(until_ns, events);
	woken = count > 0 ? WOKEN : NOT_WOKEN;

	__atomic_store_n(&progress.sleeps_until, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < count; i++) {
		struct watched_fd *watched = events[i].data.ptr;

		if (watched == &arrivals)
			woken = WOKEN_BY_ARRIVAL;
		if (!watched) {
			if (descriptor_is_ours(progress.wake))
				eventfd_read(progress.wake, &ignored);
			continue;
		}
		if (!call_ready(watched, events[i].events, removals))
			break;
	}
	return woken;
}

static void *device_thread(void *argument)
{
	struct poll_activity activity = {0};
	enum woken woken = NOT_WOKEN;

	(void)argument;
	on_thread = true;
	thread_run_soon();
	for (;;) {
		uint64_t until, next;

		__atomic_store_n(&progress.sleeps_until, 0, __ATOMIC_SEQ_CST);
		until = first_poller() ? handle_arrivals(&activity, woken) : FOR_EVER;
		/* A timer that is armed from now on wakes the thread, which would otherwise sleep past it. */
		__atomic_store_n(&progress.sleeps_until, until, __ATOMIC_SEQ_CST);
		next = fire_timers();
		if (next < until)
			__atomic_store_n(&progress.sleeps_until, until = next, __ATOMIC_SEQ_CST);
		counter_add(first_device(), COUNTER_THREAD_SLEEPS, 1);
		woken = wait_for_events(until);
	}
	return NULL;
}

/* Blocks the program's signals in the thread. The lock is held. */
static int device_thread_start(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	thread_signals_to_block(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&progress.thread, &attr, device_thread, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? -EAGAIN : 0;
}

/* The lock is held. */
static void close_descriptors(void)
{
	if (progress.epoll >= 0)
		descriptor_close(progress.epoll);
	if (progress.arrivals >= 0)
		descriptor_close(progress.arrivals);
	if (progress.wake >= 0)
		descriptor_close(progress.wake);
	progress.epoll = progress.arrivals = progress.wake = -1;
}

/* The lock is held. */
static int open_descriptors(void)
{
	struct epoll_event wake = {.events = EPOLLIN}, arrival = {.events = EPOLLIN, .data.ptr = &arrivals};

	if (progress.epoll >= 0)
		return 0;
	progress.epoll = descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
	progress.arrivals = descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
	progress.wake = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	progress.sleeps_on_arrivals = true;
	if (progress.epoll >= 0 && progress.arrivals >= 0 && progress.wake >= 0 &&
	    !epoll_ctl(progress.epoll, EPOLL_CTL_ADD, progress.wake, &wake) &&
	    !epoll_ctl(progress.epoll, EPOLL_CTL_ADD, progress.arrivals, &arrival))
		return 0;
	close_descriptors();
	return -EAGAIN;
}

int progress_start(void)
{
	int error = 0;

	if (__atomic_load_n(&progress.started, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&progress.lock);
	if (!progress.started) {
		error = open_descriptors();
		if (!error)
			error = device_thread_start();
		if (!error)
			__atomic_store_n(&progress.started, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&progress.lock);
	return error;
}

bool progress_runs(void)
{
	return __atomic_load_n(&progress.started, __ATOMIC_ACQUIRE);
}

bool progress_on_thread(void)
{
	return on_thread;
}

void progress_wake(void)
{
	WITHOUT_CANCELLATION;

	if (__atomic_load_n(&progress.started, __ATOMIC_ACQUIRE) && descriptor_check(progress.wake))
		eventfd_write(progress.wake, 1);
}

static void device_thread_wake_before(uint64_t deadline_ns)
{
	if (__atomic_load_n(&progress.sleeps_until, __ATOMIC_SEQ_CST) > deadline_ns)
		progress_wake();
}

const struct timer_thread progress_timer_thread = {.start = progress_start, .wake_before = device_thread_wake_before};

/* ---- registering ----------------------------------------------------------------------------------------------- */

int progress_add(struct poller *poller)
{
	int error = progress_start();

	if (error)
		return error;
	poller->armed = true;
	pthread_mutex_lock(&progress.lock);
	poller->next = progress.pollers;
	__atomic_store_n(&progress.pollers, poller, __ATOMIC_RELEASE);
	__atomic_store_n(&progress_pollers, progress_pollers + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&progress.lock);
	progress_wake();
	return 0;
}

static int epoll_change(int epoll, int operation, int fd, struct watched_fd *watched, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watched};

	if (!descriptor_check(epoll) || !descriptor_check(fd))
		return -EBADF;
	return epoll_ctl(epoll, operation, fd, &event) ? -errno : 0;
}

static int epoll_watch(int *epoll, struct watched_fd *watched, struct watched_fd *found, uint32_t events)
{
	int error = progress_start();

	if (error)
		return error;
	/* Orders earlier stores to @watched before call_ready(). */
	pthread_mutex_lock(&progress.lock);
	error = epoll_change(*epoll, EPOLL_CTL_ADD, watched->fd, found, events);
	pthread_mutex_unlock(&progress.lock);
	return error;
}

int progress_watch(struct watched_fd *watched, uint32_t events)
{
	return epoll_watch(&progress.epoll, watched, watched, events);
}

int progress_rewatch(struct watched_fd *watched, uint32_t events)
{
	return epoll_change(progress.epoll, EPOLL_CTL_MOD, watched->fd, watched, events);
}

int progress_watch_arrivals(struct watched_fd *watched, uint32_t events)
{
	bool drained = watched->drain;
	int error;

	watched->drained = drained;
	__atomic_add_fetch(&progress.drained, drained, __ATOMIC_RELAXED);
	error = epoll_watch(&progress.arrivals, watched, drained ? watched : NULL, events);
	if (error)
		__atomic_sub_fetch(&progress.drained, drained, __ATOMIC_RELAXED);
	return error;
}

int progress_rewatch_arrivals(struct watched_fd *watched, uint32_t events)
{
	return epoll_change(progress.arrivals, EPOLL_CTL_MOD, watched->fd, watched->drain ? watched : NULL, events);
}

void progress_unwatch(struct watched_fd *watched)
{
	WITHOUT_CANCELLATION;

	if (!epoll_change(progress.arrivals, EPOLL_CTL_DEL, watched->fd, NULL, 0) && watched->drained)
		__atomic_sub_fetch(&progress.drained, 1, __ATOMIC_RELAXED);
	epoll_change(progress.epoll, EPOLL_CTL_DEL, watched->fd, NULL, 0);
	pthread_mutex_lock(&progress.lock);
	progress.removals++;
	while (progress.running == watched && !pthread_equal(pthread_self(), progress.thread))
		pthread_cond_wait(&progress.ready_done, &progress.lock);
	pthread_mutex_unlock(&progress.lock);
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

uint32_t progress_generation(void)
{
	return __atomic_load_n(&progress.generation, __ATOMIC_RELAXED);
}

void progress_before_fork(void)
{
	pthread_mutex_lock(&progress.lock);
}

void progress_after_fork(bool child)
{
	if (child) {
		close_descriptors();
		substitute_poller_after_fork();
		progress.drained = 0;
		progress.pollers = NULL;
		progress_pollers = 0;
		progress.running = NULL;
		progress.looks = 0;
		progress.attended = 0;
		progress.started = false;
		progress.sleeps_until = 0;
		progress.polling = 0;
		progress.generation++;
		pthread_cond_init(&progress.ready_done, NULL);
	}
	pthread_mutex_unlock(&progress.lock);
}
