/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling of doorbell records. */
#include "progress/watch.h"
#include "progress/commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/compiler.h"
#include "core/descriptor.h"
#include "core/thread.h"
#include "core/timer.h"
#include "core/tunables.h"
#include "hca/hca.h"
#include "progress/program_memory.h"
#include "progress/progress.h"

/* Values chosen for speed. */
enum {
	/* ns of continuous polling after a doorbell: a program that waits for a completion rings again soon */
	WATCH_SPIN_NS = 50000,
	/* ns of alternation between polling and sleeping after that */
	WATCH_ACTIVE_NS = 10000000,
	/* ns of such a sleep */
	WATCH_SHORT_SLEEP_NS = 20000,
	/* ns for which a check of the descriptors is valid */
	WATCH_VALID_NS = 1000000,
	/*
	 * ns of the longest sleep, for changes that are not trapped: entries for a flushed receive queue, records
	 * without a register
	 */
	WATCH_LONGEST_SLEEP_NS = 20000000,
	/* queues in umems whose records are read together */
	WATCH_BATCH = 64,
	/* limit for doubling the rings without a spin after spins in vain: at least one ring in 64 has one */
	WATCH_MISSES = 6,
};

#define FOR_EVER UINT64_MAX

void watcher_init(struct watcher *watcher, struct hca *hca)
{
	pthread_mutexattr_t attr;

	*watcher = (struct watcher){.wake = -1, .hca = hca};
	trap_init(&watcher->trap);
	pthread_mutexattr_init(&attr);
	/* A handler of the program may store to a register while the thread that it interrupts has the lock. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&watcher->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&watcher->stopped, NULL);
}

static void watch_set_stale(struct watcher *watcher, struct watch *watch, bool stale)
{
	watcher->stale += stale;
	watcher->stale -= watch->stale;
	__atomic_store_n(&watch->stale, stale, __ATOMIC_RELAXED);
}

static void unlink_watch(struct watcher *watcher, struct watch *watch)
{
	if (!watch->link)
		return;
	watch_set_stale(watcher, watch, false);
	*watch->link = watch->next;
	if (watch->next)
		watch->next->link = watch->link;
	watch->link = NULL;
}

void watcher_after_fork(struct watcher *watcher)
{
	struct trap trap = watcher->trap;

	while (watcher->first)
		unlink_watch(watcher, watcher->first);
	if (watcher->wake >= 0)
		descriptor_close(watcher->wake);
	watcher_init(watcher, watcher->hca);
	watcher->trap = trap;
	trap_after_fork(&watcher->trap);
}

/* Records read together. An unmapped one keeps its last value. */
struct batch {
	struct watch *watch[WATCH_BATCH];
	struct iovec now[WATCH_BATCH], record[WATCH_BATCH];
	size_t count;
};

static void read_batch(struct batch *batch)
{
	size_t read = 0;

	while (read < batch->count) {
		read += program_ring_read_each(batch->now + read, batch->record + read, batch->count - read);
		if (read < batch->count)
			memcpy(batch->now[read].iov_base, batch->watch[read]->seen, batch->now[read].iov_len);
		read++;
	}
	batch->count = 0;
}

/* The lock is held. */
static void read_umems(const struct watcher *watcher)
{
	struct batch batch;

	batch.count = 0; /* the rest is written before it is read; most scans involve no umems */
	for (struct watch *watch = watcher->first; watch; watch = watch->next) {
		size_t bytes = watch->count * sizeof(watch->now[0]);

		if (!watch->in_umem)
			continue;
		batch.watch[batch.count] = watch;
		batch.now[batch.count] = (struct iovec){watch->now, bytes};
		batch.record[batch.count++] = (struct iovec){(void *)watch->records, bytes};
		if (batch.count == WATCH_BATCH)
			read_batch(&batch);
	}
	read_batch(&batch);
}

static uint32_t watch_record(const struct watch *watch, uint32_t index)
{
	return watch->in_umem ? watch->now[index] : __atomic_load_n(&watch->records[index], __ATOMIC_ACQUIRE);
}

static bool watch_has_changed(const struct watch *watch)
{
	for (uint32_t i = 0; i < watch->count; i++)
		if (watch_record(watch, i) != watch->seen[i])
			return true;
	return false;
}

static void watch_note_records(struct watch *watch)
{
	for (uint32_t i = 0; i < watch->count; i++)
		watch->seen[i] = watch_record(watch, i);
}

/* Returns true if the last record of a stale @watch has changed, or its doorbell was rung. */
static bool watch_is_fresh(const struct watcher *watcher, const struct watch *watch)
{
	uint32_t last = watch->count - 1;

	return watch_record(watch, last) != watch->seen[last] || trap_holds_doorbell(&watcher->trap, watch->number);
}

static bool watch_is_rung(const struct watcher *watcher, const struct watch *watch)
{
	return watch_has_changed(watch) || (unlikely(watch->stale) && watch_is_fresh(watcher, watch));
}

static bool anything_changed(const struct watcher *watcher)
{
	read_umems(watcher);
	for (const struct watch *watch = watcher->first; watch; watch = watch->next)
		if (watch_is_rung(watcher, watch))
			return true;
	return false;
}

static void watcher_ring(struct watcher *watcher, struct watch *watch)
{
	if (unlikely(watch->stale) && watch_is_fresh(watcher, watch))
		watch_set_stale(watcher, watch, false);
	watch_note_records(watch);
	watcher->ringing = watch;
	pthread_mutex_unlock(&watcher->lock);
	watch->rung(watch);
	pthread_mutex_lock(&watcher->lock);
	watcher->ringing = NULL;
	pthread_cond_broadcast(&watcher->stopped);
}

bool watcher_scan(struct watcher *watcher)
{
	bool rang = false;

	watcher->again = true;
	if (watcher->scanning)
		return false;
	watcher->scanning = true;
	while (watcher->again) {
		watcher->again = false;
		read_umems(watcher);
		for (struct watch *watch = watcher->first; watch; watch = watch->next) {
			if (!watch_is_rung(watcher, watch))
				continue;
			rang = true;
			watcher_ring(watcher, watch);
		}
	}
	watcher->scanning = false;
	return rang;
}

/*
 * Returns true if the descriptors are ours, or were a moment ago: comparing the files takes four system calls, a third of a
 * short sleep's work. The sleep only polls them.
 */
static bool watcher_check(struct watcher *watcher)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - watcher->checked_ns < WATCH_VALID_NS)
		return true;
	if (!descriptor_check(watcher->wake) || (watcher->trap.fd >= 0 && !descriptor_check(watcher->trap.fd)))
		return false;
	watcher->checked_ns = now_ns;
	return true;
}

/*
 * Sleeps until the watcher is woken (true) or a store is trapped, at most for @ns, less if it must check whether the
 * program has closed its descriptors. No lock held.
 */
static bool watcher_sleep(struct watcher *watcher, uint64_t ns)
{
	struct pollfd fds[2] = {{.fd = watcher->wake, .events = POLLIN}, {.fd = watcher->trap.fd, .events = POLLIN}};
	const uint64_t most_ns = ns < TUNABLE_DESCRIPTOR_LOOK_NS ? ns : TUNABLE_DESCRIPTOR_LOOK_NS;
	const struct timespec time = {.tv_sec = (time_t)(most_ns / 1000000000u),
				      .tv_nsec = (long)(most_ns % 1000000000u)};
	const struct timespec nap = {.tv_nsec = TUNABLE_DESCRIPTOR_NAP_NS};
	eventfd_t count;

	if (!watcher_check(watcher)) {
		nanosleep(&nap, NULL);
		return false;
	}
	if (ppoll(fds, 2, &time, NULL) <= 0)
		return false;
	if (fds[0].revents && descriptor_is_ours(watcher->wake))
		eventfd_read(watcher->wake, &count);
	return true;
}

static uint64_t long_sleep(const struct watcher *watcher, uint64_t silent_ns)
{
	if (!watcher->first)
		return FOR_EVER;
	if (watcher->trap.state == TRAP_WAKES || silent_ns / 8 > WATCH_LONGEST_SLEEP_NS)
		return WATCH_LONGEST_SLEEP_NS;
	return silent_ns / 8;
}

/* Sleeps until a doorbell rings. The lock is held, but not while sleeping. */
static void wait_for_ring(struct watcher *watcher, uint64_t last_ns)
{
	bool woken = false;

	/* Arming discards the registers, which contain the doorbells of stale watches. */
	if (!watcher->stale)
		trap_arm(&watcher->trap);
	/* A store before the page was discarded was not trapped; but its record was written before it. */
	while (!woken && !anything_changed(watcher)) {
		uint64_t ns = long_sleep(watcher, clock_now_ns() - last_ns);

		pthread_mutex_unlock(&watcher->lock);
		woken = watcher_sleep(watcher, ns);
		pthread_mutex_lock(&watcher->lock);
	}
	/* First, because ringing the queue may take a while. */
	trap_release(&watcher->trap);
}

static void pause_shortly(struct watcher *watcher, bool spin)
{
	bool woken = false;

	pthread_mutex_unlock(&watcher->lock);
	if (spin)
		pause_cpu();
	else
		woken = watcher_sleep(watcher, WATCH_SHORT_SLEEP_NS);
	pthread_mutex_lock(&watcher->lock);
	if (woken)
		trap_release(&watcher->trap);
}

struct pace {
	uint64_t last_ns; /* latest doorbell */
	bool spinning;    /* since then */
	uint32_t misses;  /* consecutive spins in vain */
	uint32_t skip;    /* doorbells until the next spin */
};

/*
 * Spins if the next doorbell usually rings at once. It does not if the ringing thread waits for this processor, or if
 * doorbells are rare: then spinning is tried less and less often.
 */
static void pace_update(struct pace *pace, bool rang, uint64_t now_ns)
{
	if (rang) {
		if (pace->spinning)
			pace->misses = 0;
		pace->last_ns = now_ns;
		pace->spinning = !pace->skip;
		pace->skip -= pace->skip != 0;
	} else if (pace->spinning && now_ns - pace->last_ns >= WATCH_SPIN_NS) {
		pace->spinning = false;
		pace->misses += pace->misses < WATCH_MISSES;
		pace->skip = 1u << pace->misses;
	}
}

/*
 * A program that drives its rings itself makes no call that would handle arrivals, and waking the device thread would
 * take longer than the whole message. The lock is held, but not while polling.
 */
static bool watcher_take_arrivals(struct watcher *watcher)
{
	bool arrived;

	if (!progress_has_pollers())
		return false;
	pthread_mutex_unlock(&watcher->lock);
	arrived = progress_poll();
	pthread_mutex_lock(&watcher->lock);
	return arrived;
}

/*
 * Polls while there is activity, and a little longer, or until the threads that store had better ring themselves.
 * Returns the time of the latest activity. The lock is held, but released at times.
 */
static uint64_t watcher_attend(struct watcher *watcher)
{
	struct pace pace = {.last_ns = clock_now_ns()};
	uint64_t now_ns = pace.last_ns;

	progress_attend_begin();
	while (now_ns - pace.last_ns < WATCH_ACTIVE_NS && !stores_should_fault(watcher, now_ns)) {
		bool busy = watcher_scan(watcher);

		busy |= watcher_take_arrivals(watcher);
		now_ns = clock_now_ns();
		stores_note_scan(watcher, busy, now_ns);
		pace_update(&pace, busy, now_ns);
		pause_shortly(watcher, pace.spinning);
	}
	pthread_mutex_unlock(&watcher->lock);
	progress_attend_end();
	pthread_mutex_lock(&watcher->lock);
	return pace.last_ns;
}

/* Sleeps while stores fault, but for a look now and then. The lock is held, but not while sleeping. */
static void leave_to_storing_threads(struct watcher *watcher)
{
	while (stores_still_fault(watcher)) {
		pthread_mutex_unlock(&watcher->lock);
		watcher_sleep(watcher, WATCH_LONGEST_SLEEP_NS);
		pthread_mutex_lock(&watcher->lock);
		/* Entries of receive queues, which have no register. */
		watcher_scan(watcher);
	}
}

static void *watcher_thread(void *argument)
{
	struct watcher *watcher = argument;
	uint64_t last_ns;

	thread_run_soon();
	pthread_mutex_lock(&watcher->lock);
	for (;;) {
		last_ns = watcher_attend(watcher);
		if (!watcher->stores.due)
			wait_for_ring(watcher, last_ns);
		else if (stores_begin_to_fault(watcher))
			leave_to_storing_threads(watcher);
	}
	return NULL;
}

void watcher_wake(const struct watcher *watcher)
{
	if (descriptor_check(watcher->wake))
		eventfd_write(watcher->wake, 1);
}

/* Blocks the program's signals in the thread. */
static int watcher_thread_start(struct watcher *watcher)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error;

	if (watcher->wake < 0)
		watcher->wake = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (watcher->wake < 0)
		return -EAGAIN;
	trap_open(&watcher->trap);
	thread_signals_to_block(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&watcher->thread, &attr, watcher_thread, watcher);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	watcher->started = !error;
	return error ? -EAGAIN : 0;
}

/* Unmapped records read as 0. */
static void watch_read_records(struct watch *watch)
{
	if (watch->in_umem && program_ring_read(watch->now, watch->records, watch->count * sizeof(*watch->records)))
		memset(watch->now, 0, sizeof(watch->now));
}

/* Makes the next scan detect a change. */
static void watch_forget_seen(struct watch *watch)
{
	for (uint32_t i = 0; i < watch->count; i++)
		watch->seen[i] = ~watch->seen[i];
}

static void link_watch(struct watcher *watcher, struct watch *watch)
{
	watch->next = watcher->first;
	if (watch->next)
		watch->next->link = &watch->next;
	watch->link = &watcher->first;
	watcher->first = watch;
}

int watch_start(struct watcher *watcher, struct watch *watch, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch))
{
	WITHOUT_CANCELLATION;
	int error = 0;

	pthread_mutex_lock(&watcher->lock);
	if (!watcher->started)
		error = watcher_thread_start(watcher);
	if (!error && !watch->link) {
		watch->records = records;
		watch->count = count;
		watch->rung = rung;
		watch_read_records(watch);
		watch_note_records(watch);
		if (watch->at_once)
			watch_forget_seen(watch);
		link_watch(watcher, watch);
		/* The thread may be in an unlimited sleep, and a doorbell is likely to follow soon. */
		watcher_wake(watcher);
	}
	pthread_mutex_unlock(&watcher->lock);
	return error;
}

bool watch_restart(struct watcher *watcher, struct watch *watch, uint32_t number)
{
	WITHOUT_CANCELLATION;
	bool stale = false;

	pthread_mutex_lock(&watcher->lock);
	while (watcher->ringing == watch)
		pthread_cond_wait(&watcher->stopped, &watcher->lock);
	if (watch->link) {
		watch_read_records(watch);
		watch_note_records(watch);
		watch->number = number;
		/* A store that faults does not reach the register, which counts while the record is stale. */
		if (watcher->trap.state == TRAP_FAULTS)
			trap_release(&watcher->trap);
		trap_clear_doorbell(&watcher->trap, number);
		stale = watch->seen[watch->count - 1];
		watch_set_stale(watcher, watch, stale);
		if (stale)
			eventfd_write(watcher->wake, 1); /* the trap may be armed */
	}
	pthread_mutex_unlock(&watcher->lock);
	return stale;
}

void watch_stop(struct watcher *watcher, struct watch *watch)
{
	WITHOUT_CANCELLATION;

	pthread_mutex_lock(&watcher->lock);
	while (watcher->ringing == watch)
		pthread_cond_wait(&watcher->stopped, &watcher->lock);
	unlink_watch(watcher, watch);
	pthread_mutex_unlock(&watcher->lock);
}

void watch_page(struct watcher *watcher, void *page)
{
	WITHOUT_CANCELLATION;

	pthread_mutex_lock(&watcher->lock);
	trap_add(&watcher->trap, page);
	pthread_mutex_unlock(&watcher->lock);
}

void unwatch_page(struct watcher *watcher, void *page)
{
	WITHOUT_CANCELLATION;

	pthread_mutex_lock(&watcher->lock);
	trap_remove(&watcher->trap, page);
	if (!watcher->trap.pages)
		stores_end(watcher);
	pthread_mutex_unlock(&watcher->lock);
}

void hca_watch_page(struct hca *hca, void *page)
{
	watch_page(hca->watcher, page);
}

void hca_unwatch_page(struct hca *hca, void *page)
{
	unwatch_page(hca->watcher, page);
}
