/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which thread handles arrivals. A program that polls an empty CQ handles them itself (progress_poll). While
 * the program does not poll, the device thread, one per process, sleeps until a descriptor is ready, a timer is due, or
 * a peer wakes it.
 *
 * The thread is started when first needed. It blocks all signals and holds no lock while it sleeps.
 *
 * While the program polls, arrivals should not wake the thread, which costs their sender a system call and the program
 * a part of its processor. So pollers are armed only while no thread polls. The device thread controls this: after
 * several consecutive arrivals at a time when the program polls, it requests that the program disarm them. It then
 * checks every 100 us whether the program still polls, up to every millisecond if the program has polled for long; if
 * not, it arms them, polls once more, and sleeps. A program that arms a CQ is about to sleep, so that call arms them
 * itself. A program that is busy with its queues (progress_worked) counts as polling.
 *
 * One thread at a time calls the pollers. A forked child has no pollers, no descriptors and no thread; the code that
 * registered them registers them again (see progress_generation).
 */
#ifndef SOFTHCA_PROGRESS_PROGRESS_H
#define SOFTHCA_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/compiler.h"
#include "core/epoch.h"
#include "core/visibility.h"

struct run;

struct poller {
	struct poller *next;
	bool repeats; /* arm() is called before each sleep, even if the pollers are armed already */
	bool armed;   /* progress.c */
	/**
	 * Handles a batch of arrivals: builds a packet in run_slot(@run), calls run_commit(), deliver_queued(@run), and
	 * so on. Inside an epoch section, no lock held; the caller then handles the QPs that are due. Returns true if
	 * anything had arrived.
	 */
	bool (*poll)(struct poller *poller, struct run *run);
	/**
	 * Returns true if poll() would find nothing: a cheap check without a system call, for programs that poll all
	 * the time. In an epoch section, in place of poll(). NULL: poll() is cheap enough.
	 */
	bool (*idle)(struct poller *poller);
	/**
	 * Sets whether arrivals must wake the device thread. A poller is added armed. After arming, the caller polls
	 * once more or ensures that another thread does soon.
	 */
	void (*arm)(struct poller *poller, bool armed);
	/**
	 * Prepares an armed poller for the sleep of a thread on the descriptors of arrivals, in place of poll(): while
	 * unhandled arrivals exist, one of them is readable. @stays: the thread sends nothing before it sleeps. NULL:
	 * poll() must be called.
	 */
	void (*rest)(struct poller *poller, bool stays);
	/**
	 * Reports that the program has begun to poll continuously, or has stopped. On the device thread, no lock held.
	 * May be NULL.
	 */
	void (*attend)(struct poller *poller, bool attends);
};

/* A descriptor that the device thread sleeps on. */
struct watched_fd {
	int fd;
	bool drained; /* progress.c */
	/**
	 * Called on the device thread, no lock held, outside an epoch section. @events of epoll(7). May unwatch and
	 * close the descriptor.
	 */
	void (*ready)(struct watched_fd *watched, uint32_t events);
	/**
	 * For a descriptor of arrivals: reads the data that the poller leaves in it. Any thread, several at once, in an
	 * epoch section, so memory and descriptor stay valid until it ends. Takes no lock. NULL: the poller reads
	 * everything, and this structure is not accessed.
	 */
	void (*drain)(struct watched_fd *watched);
};

/**
 * Calls @poll with a run, inside an epoch section, handles the QPs that are due after it, and returns its result. Set
 * before the first device exists (process/devices.c).
 */
extern bool (*progress_in_run)(bool (*poll)(struct run *run));

/** Adds @poller permanently; starts the thread. Returns 0 or -EAGAIN (no thread could be made). Any thread may call. */
int progress_add(struct poller *poller);

/**
 * Watches @watched for @events (level triggered), starting the thread. Returns 0 or a negative errno. Any thread may
 * call.
 */
int progress_watch(struct watched_fd *watched, uint32_t events);
/** Changes the watched events. */
int progress_rewatch(struct watched_fd *watched, uint32_t events);
/**
 * As progress_watch() and progress_rewatch(), for a descriptor that becomes readable on arrivals. A thread that sleeps
 * on such descriptors, the device thread or its substitute (substitute_poller.h), calls all pollers afterwards. The
 * descriptor may also be watched for other events.
 */
int progress_watch_arrivals(struct watched_fd *watched, uint32_t events);
int progress_rewatch_arrivals(struct watched_fd *watched, uint32_t events);
/**
 * Ends both kinds of watching. On return `ready` does not run and will not run, unless the caller is this or another
 * `ready` function. No lock that `ready` takes may be held.
 */
void progress_unwatch(struct watched_fd *watched);

/** The device thread, for timers. */
extern const struct timer_thread progress_timer_thread;
/** Starts the thread. Returns 0 or -EAGAIN. Any thread may call. */
int progress_start(void);
/** Returns true if the thread runs. Any thread may call. */
bool progress_runs(void);
/** Returns true on the device thread. Any thread may call. */
bool progress_on_thread(void);
/** Wakes the device thread: it calls all pollers and fires due timers. Any thread may call. */
void progress_wake(void);

/* For progress_has_pollers() only. */
extern uint32_t progress_pollers SOFTHCA_OWN;

/**
 * Returns true if there are pollers. Otherwise nothing can arrive, and polling CQs need not call progress_poll(). Any
 * thread may call.
 */
static inline bool progress_has_pollers(void)
{
	return __atomic_load_n(&progress_pollers, __ATOMIC_RELAXED);
}

/**
 * Counts @works units of work that show that the program is busy with its queues: this thread took completions, handled
 * arrivals, or sent a long message, which takes as long. Such a program may poll rarely and find completions each time,
 * while the device thread handles arrivals on its behalf. Any thread may call, with any lock held.
 */
static inline void progress_worked(uint32_t works)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (likely(slot != NULL))
		__atomic_store_n(&slot->works, slot->works + works, __ATOMIC_RELAXED);
}

/**
 * Calls all pollers once, on behalf of a program that found nothing in its CQ. Returns false if nothing arrived. No
 * lock held.
 */
bool progress_poll(void);

/**
 * Begin and end a period in which a thread of the library that polls doorbells (progress/watch.h) also polls for
 * arrivals, on behalf of a program that makes no calls. Its progress_poll() then counts as that of a program that polls
 * continuously. After the end, arrivals wake the device thread. Each is called once per period; no lock held.
 */
void progress_attend_begin(void);
void progress_attend_end(void);

/**
 * Handles arrivals, for a timer that is about to treat silence as loss. Returns false if some may be left, because
 * another thread is polling or arrivals keep coming. No lock held.
 */
bool progress_look(void);

/**
 * Waits until the current poll of another thread, if any, has ended, so that the arrivals it took have been handled.
 * The wait is bounded, since the poll may belong to this very thread, interrupted by a signal handler. Any thread may
 * call, with any lock held.
 */
void progress_wait_for_poll(void);

/**
 * Reports that the program armed a CQ and is about to sleep: arrivals wake the device thread from now on. No lock held.
 */
void progress_before_sleep(void);

/** Returns the generation of the process, from 1. It changes in a forked child, where all registrations are lost. */
uint32_t progress_generation(void);
/** Handlers around fork(): hold the lock, so that the child finds it free. */
void progress_before_fork(void);
void progress_after_fork(bool child);

#endif
