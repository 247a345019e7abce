/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which thread handles arrivals: a program that polls an empty CQ (progress_poll), otherwise the device thread,
 * one per process (README.md, DESIGN.md). Waking it costs the sender a system call and the program a part of its
 * processor, so pollers are armed only while no thread polls. After several consecutive arrivals while the program
 * polls, the device thread requests that the program disarm them.
 *
 * One thread at a time calls the pollers. Any thread may call the functions. A forked child has no pollers, no
 * descriptors and no thread; the code that registered them registers them again (progress_generation()).
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
	bool repeats; /* arm() is called before each sleep, even if already armed */
	bool armed;   /* pollers.c */
	/**
	 * Handles a batch of arrivals: builds a packet in run_slot(@run), calls run_commit(), deliver_queued(@run), and
	 * so on. Inside an epoch section, no lock held. Returns true if anything had arrived.
	 */
	bool (*poll)(struct poller *poller, struct run *run);
	/**
	 * Returns true if poll() would find nothing, or may wait for a later poll of the program. Without a system call, in an
	 * epoch section. NULL: never.
	 */
	bool (*idle)(struct poller *poller);
	/**
	 * Sets whether arrivals must wake the device thread; initially true. After arming, the caller polls once more
	 * or ensures that another thread does soon.
	 */
	void (*arm)(struct poller *poller, bool armed);
	/**
	 * Prepares an armed poller, in place of poll(), for a thread that sleeps on the descriptors of arrivals: one of
	 * them is readable while unhandled arrivals exist. @stays: the thread sends nothing before it sleeps. NULL:
	 * poll() must be called.
	 */
	void (*rest)(struct poller *poller, bool stays);
	/**
	 * Reports that the program has begun or stopped to poll continuously. On the device thread, no lock held. May
	 * be NULL.
	 */
	void (*attend)(struct poller *poller, bool attends);
};

struct watched_fd {
	int fd;
	bool drained; /* arrivals.c */
	/**
	 * Called on the device thread, no lock held, outside an epoch section. @events of epoll(7). May unwatch and
	 * close the descriptor.
	 */
	void (*ready)(struct watched_fd *watched, uint32_t events);
	/**
	 * For a descriptor of arrivals: reads the data that the poller leaves in it. Several threads at once, in an
	 * epoch section, until whose end memory and descriptor stay valid. Takes no lock. NULL: the poller reads
	 * everything, and this structure is not accessed.
	 */
	void (*drain)(struct watched_fd *watched);
};

/**
 * Calls @poll with a run, inside an epoch section, then handles the QPs that are due. Returns its result. Set before
 * the first device exists (process/devices.c).
 */
extern bool (*progress_in_run)(bool (*poll)(struct run *run));

/** Adds @poller permanently; starts the thread. Returns 0 or -EAGAIN (no thread). */
int progress_add(struct poller *poller);

/** Watches for @events (level triggered), starting the thread. Returns 0 or a negative errno. */
int progress_watch(struct watched_fd *watched, uint32_t events);
/** Changes the watched events. */
int progress_rewatch(struct watched_fd *watched, uint32_t events);
/**
 * The same for a descriptor that becomes readable on arrivals: a thread that sleeps on it, the device thread or its
 * substitute, calls all pollers afterwards. It may also be watched for other events.
 */
int progress_watch_arrivals(struct watched_fd *watched, uint32_t events);
int progress_rewatch_arrivals(struct watched_fd *watched, uint32_t events);
/**
 * Ends both kinds of watching. On return `ready` does not run and will not run, unless the caller is a `ready`
 * function. No lock that `ready` takes may be held.
 */
void progress_unwatch(struct watched_fd *watched);

/** The device thread, for timers. */
extern const struct timer_thread progress_timer_thread;
/** Starts the thread. Returns 0 or -EAGAIN. */
int progress_start(void);
bool progress_runs(void);
bool progress_on_thread(void);
/** Makes the device thread call all pollers and fire due timers. */
void progress_wake(void);

/* For progress_has_pollers() only. */
extern uint32_t progress_pollers SOFTHCA_OWN;

/** Returns false if nothing can arrive, so that polling CQs need not call progress_poll(). */
static inline bool progress_has_pollers(void)
{
	return __atomic_load_n(&progress_pollers, __ATOMIC_RELAXED);
}

/**
 * Counts @works units of work that show that the program is busy with its queues: this thread took completions, handled
 * arrivals, or sent a long message. Such a program counts as polling, even if it polls rarely because the device thread
 * handles arrivals for it. Under any lock.
 */
static inline void progress_worked(uint32_t works)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (likely(slot != NULL))
		__atomic_store_n(&slot->works, slot->works + works, __ATOMIC_RELAXED);
}

/** Calls all pollers once, for a program that found its CQ empty. Returns false if nothing arrived. No lock held. */
bool progress_poll(void);

/* Packets that this thread has sent by system calls since its last poll. */
extern __thread uint32_t progress_unpolled __attribute__((tls_model("initial-exec")));

/** Counts a packet that this thread sends by a system call. Under any lock. */
static inline void progress_sent(void)
{
	progress_unpolled++;
	progress_worked(1);
}

/**
 * Polls after some packets: a program that posts requests in a row makes no other call that handles arrivals, and would
 * share its processor with the device thread, which each of them wakes. No lock held.
 */
void progress_after_sending(void);

/**
 * Begin and end a period in which a thread of the library that polls doorbells (watch.h) also polls for arrivals: its
 * progress_poll() counts as the program's. After the end, arrivals wake the device thread. No lock held.
 */
void progress_attend_begin(void);
void progress_attend_end(void);

/**
 * Polls for a thread of the program until *@count is not @before, or for @ns. Returns false in the latter case, in which
 * arrivals wake the device thread from then on, and if nothing can arrive; otherwise the program counts as polling for a
 * while. No lock held.
 */
bool progress_poll_until(const uint32_t *count, uint32_t before, uint64_t ns);

/**
 * Handles arrivals, for a timer that is about to treat silence as loss. Returns false if some may be left, because
 * another thread is polling or arrivals keep coming. No lock held.
 */
bool progress_look(void);

/**
 * Waits until another thread's current poll, if any, has handled the arrivals that it took. Bounded, since the poll may
 * belong to this very thread, interrupted by a signal handler. Under any lock.
 */
void progress_wait_for_poll(void);

/**
 * Reports that the program armed a CQ and is about to sleep: arrivals wake the device thread from now on. No lock held.
 */
void progress_before_sleep(void);

/** Returns a number, from 1, that changes in a forked child. */
uint32_t progress_generation(void);
/** Handlers around fork(): hold the lock, so that the child finds it free. */
void progress_before_fork(void);
void progress_after_fork(bool child);

#endif
