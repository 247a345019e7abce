/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores to doorbell registers that ring on the storing thread. */
#include "progress/storing_thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "core/epoch.h"
#include "core/fault_signal.h"
#include "core/thread.h"
#include "core/timer.h"
#include "hca/hca.h"
#include "observe/page_guard.h"
#include "progress/progress.h"
#include "progress/store_decode.h"
#include "progress/watch.h"

/* Values chosen for speed. */
enum {
	/* scans of the watcher for one decision */
	STORES_SCANS = 16,
	/* ns between scans below which the watcher is fast enough */
	STORES_SCAN_NS = 50000,
	/* part of the time for which the watcher waits for a processor if these are short: 12 of 77 us beside a polling thread */
	STORES_WAIT_PART = 16,
	/* ns after which an earlier figure says nothing about now */
	STORES_WAIT_VALID_NS = 10000000,
	/* ns for which a storing thread polls for an answer */
	STORES_POLL_NS = 200000,
	/* ns within which no answer to this store arrives, but messages that arrive anyway */
	STORES_INSTANT_NS = 1000,
	/* consecutive polls in vain after which stores do not fault any more */
	STORES_VAIN = 8,
	/* ns until they fault again; doubled up to so many times if it is in vain again */
	STORES_PAUSE_NS = 100000000,
	STORES_PAUSES = 6,
	/* answers after which it was not in vain */
	STORES_ANSWERS = 64,
	/* bytes of stack that the device needs on an alternate signal stack */
	STORES_STACK_BYTES = 32768,
	/* first send doorbell register of a page (mlx5-formats 1.16); before it are those of CQs */
	SEND_REGISTERS = 0x800,
};

void stores_note_scan(struct watcher *watcher, bool rang, uint64_t now_ns)
{
	struct storing_thread *stores = &watcher->stores;

	if (stores->scans == STORES_SCANS) {
		stores->scans = 0;
		stores->scans_rung = 0;
	}
	if (!stores->scans)
		stores->scans_since_ns = now_ns;
	stores->scans++;
	stores->scans_rung += rang;
}

/* Returns true if the last scans were far apart although doorbells rang. */
static bool scans_are_slow(const struct storing_thread *stores, uint64_t now_ns)
{
	return stores->scans == STORES_SCANS && stores->scans_rung >= STORES_SCANS / 4 &&
	       now_ns - stores->scans_since_ns >= (uint64_t)(STORES_SCANS - 1) * STORES_SCAN_NS;
}

/* Returns true if this thread has waited for a processor lately, rather than worked or slept. */
static bool processors_are_short(struct storing_thread *stores, uint64_t now_ns)
{
	uint64_t waited_ns = thread_waited_ns(), elapsed_ns = now_ns - stores->waited_at_ns;
	uint64_t since_ns = waited_ns - stores->waited_ns;

	stores->waited_ns = waited_ns;
	stores->waited_at_ns = now_ns;
	return elapsed_ns < STORES_WAIT_VALID_NS && since_ns * STORES_WAIT_PART >= elapsed_ns;
}

bool stores_should_fault(struct watcher *watcher, uint64_t now_ns)
{
	struct storing_thread *stores = &watcher->stores;
	bool can = !stores->refused && !watcher->stale && watcher->first && watcher->trap.pages &&
		   now_ns >= stores->not_before_ns;

	switch (watcher->hca->settings.doorbells) {
	case DOORBELLS_SCAN:
		return false;
	case DOORBELLS_TRAP:
		stores->due = can;
		break;
	default:
		stores->due = can && scans_are_slow(stores, now_ns) && processors_are_short(stores, now_ns);
	}
	return stores->due;
}

/* Lets the watcher scan for a while, longer if that happens repeatedly. */
static void stores_pause(struct storing_thread *stores, bool in_vain)
{
	stores->failures = in_vain ? stores->failures + (stores->failures < STORES_PAUSES) : 0;
	stores->not_before_ns = clock_now_ns() + ((uint64_t)STORES_PAUSE_NS << stores->failures);
	stores->scans = 0;
}

static void stores_stop_faulting(struct watcher *watcher)
{
	trap_release(&watcher->trap);
	watcher_wake(watcher);
}

/* ---- the handler ------------------------------------------------------------------------------------------------ */

/* Device code that the program's signal handler has interrupted may hold locks. */
static bool device_is_interrupted(void)
{
	return epoch_this_thread && epoch_this_thread->depth;
}

/* Returns true if the storing thread should wait for an answer: not in streams, but it tries again now and then. */
static bool stores_may_be_answered(const struct storing_thread *stores)
{
	return stores->vain < STORES_VAIN || stores->count % STORES_ANSWERS == 0;
}

/* Polls for an answer. Returns false in vain: nothing arrives, or so much that the watcher had better handle it together. */
static bool stores_poll(const struct watcher *watcher, uint32_t before)
{
	uint64_t start_ns = clock_now_ns();

	return progress_poll_until(&watcher->hca->ring_receives, before, STORES_POLL_NS) &&
	       clock_now_ns() - start_ns >= STORES_INSTANT_NS;
}

/* The lock is held, and released. */
static void stores_ring(struct watcher *watcher, bool sends)
{
	struct storing_thread *stores = &watcher->stores;
	uint32_t before;
	bool answered, polls;

	stores->count++;
	polls = sends && stores_may_be_answered(stores);
	watcher_scan(watcher);
	/* Not what this thread has sent to its own process. */
	before = __atomic_load_n(&watcher->hca->ring_receives, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(&watcher->lock);
	/* A program that arms a CQ is about to sleep. */
	if (!sends && progress_has_pollers())
		progress_before_sleep();
	if (!polls)
		return;
	answered = stores_poll(watcher, before);
	pthread_mutex_lock(&watcher->lock);
	stores->answers += answered;
	stores->vain = answered ? 0 : stores->vain + 1;
	if (stores->vain >= STORES_VAIN && watcher->hca->settings.doorbells != DOORBELLS_TRAP) {
		stores_stop_faulting(watcher);
		stores_pause(stores, stores->answers < STORES_ANSWERS);
	}
	pthread_mutex_unlock(&watcher->lock);
}

/* Handles a fault at @address if it is in a register of @watcher, whose lock is held, and released. */
static bool stores_handle(struct watcher *watcher, uintptr_t address, ucontext_t *context)
{
	uint8_t *page = trap_page_at(&watcher->trap, address);

	if (!page) {
		pthread_mutex_unlock(&watcher->lock);
		return false;
	}
	/* Otherwise it was released after the fault: the store runs again. */
	if (watcher->trap.state == TRAP_FAULTS) {
		watcher->stores.refused |= !fault_signal_has_stack(context, STORES_STACK_BYTES);
		if (!watcher->stores.refused && !device_is_interrupted() &&
		    stores_skip(context, (uintptr_t)page, TRAP_PAGE_BYTES)) {
			stores_ring(watcher, address - (uintptr_t)page >= SEND_REGISTERS);
			return true;
		}
		stores_stop_faulting(watcher);
		stores_pause(&watcher->stores, true);
	}
	pthread_mutex_unlock(&watcher->lock);
	return true;
}

/* Called by the handler of SIGSEGV. */
static bool stores_fault(int signal, const siginfo_t *info, const void *context)
{
	bool handled = false;

	if (signal != SIGSEGV || info->si_code != SEGV_ACCERR)
		return false;
	for (size_t i = 0; i < the_registry.count && !handled; i++) {
		struct watcher *watcher = the_registry.devices[i].watcher;

		if (!watcher)
			continue;
		if (pthread_mutex_lock(&watcher->lock) != EDEADLK) {
			handled = stores_handle(watcher, (uintptr_t)info->si_addr, (ucontext_t *)context);
		} else if (trap_page_at(&watcher->trap, (uintptr_t)info->si_addr)) {
			/* This thread has the lock: the store runs again, and the watcher looks. */
			stores_stop_faulting(watcher);
			handled = true;
		}
	}
	return handled;
}

/* ---- the watcher ------------------------------------------------------------------------------------------------ */

/* A handler installed now would displace that of pages closed to the program, which then stops closing pages. */
static bool stores_can_fault(struct storing_thread *stores)
{
	if (!store_decode_works() || page_guard_is_on())
		return false;
	if (!stores->holds) {
		fault_signal_add(stores_fault);
		fault_signal_hold();
		stores->holds = true;
	}
	return fault_signal_reaches_all_threads();
}

bool stores_begin_to_fault(struct watcher *watcher)
{
	struct storing_thread *stores = &watcher->stores;

	stores->due = false;
	stores->vain = 0;
	stores->answers = 0;
	stores->count_before = stores->count - 1;
	if (stores_can_fault(stores) && trap_protect(&watcher->trap)) {
		/* Rings what was stored before. */
		watcher_scan(watcher);
		return true;
	}
	stores_pause(stores, false);
	return false;
}

bool stores_still_fault(struct watcher *watcher)
{
	struct storing_thread *stores = &watcher->stores;
	bool forced = watcher->hca->settings.doorbells == DOORBELLS_TRAP;
	bool idle = !watcher->first || (stores->count == stores->count_before && !forced);

	stores->count_before = stores->count;
	if (watcher->trap.state != TRAP_FAULTS)
		return false;
	if (!idle && fault_signal_reaches_all_threads())
		return true;
	trap_release(&watcher->trap);
	stores_pause(stores, false);
	return false;
}

void stores_end(struct watcher *watcher)
{
	/* Otherwise a page that is added now would fault without a handler. */
	if (watcher->trap.state == TRAP_FAULTS)
		stores_stop_faulting(watcher);
	if (watcher->stores.holds)
		fault_signal_release();
	watcher->stores.holds = false;
}
