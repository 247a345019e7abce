/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress: who looks after what arrives. A program that polls an empty CQ does (progress_poll); as long as none does, the
 * device thread, one per process, sleeps until a descriptor is ready, a timer is due, or a peer wakes it.
 *
 * The thread exists once something needs it. It blocks all signals and holds no lock while it sleeps.
 *
 * While the program polls, arrivals shall not wake the thread: that costs their sender a system call and the program a
 * part of its processor. So pollers are armed only while nobody polls. The thread sees to it: once several arrivals in a row
 * found the program polling it has it disarm them, and it looks every 100 us whether the program still polls, up to every
 * millisecond if that has done so for long; when not, it arms them, polls once more, and sleeps. A program that arms a CQ is
 * about to sleep: it arms them itself. One that is busy with its queues (progress_worked) counts as polling.
 *
 * Pollers are polled by one thread at a time. In a forked child there are no pollers, no descriptors and no thread;
 * whoever registered them does so anew (see progress_generation).
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
	bool repeats; /* arm() may be called like that, and is to be called before each sleep, armed or not */
	bool armed;   /* progress.c */
	/**
	 * Handles what has arrived, a batch at most: builds a packet in run_slot(@run), run_commit(), deliver_queued(@run),
	 * and so on. Inside an epoch section, no lock held; the caller sees to the QPs that are due. Returns true if there was anything.
	 */
	bool (*poll)(struct poller *poller, struct run *run);
	/**
	 * True if poll() would find nothing to do: a look that is cheap and makes no system call, for programs that poll all the
	 * time. In an epoch section, instead of poll(). NULL: poll() is cheap enough.
	 */
	bool (*idle)(struct poller *poller);
	/**
	 * From now on arrivals must wake the device thread (@armed), or need not. A poller is added armed. After arming, the
	 * caller polls once more or makes sure that somebody does soon.
	 */
	void (*arm)(struct poller *poller, bool armed);
	/**
	 * In place of poll(), when a thread is about to sleep on the descriptors of arrivals and the poller is armed: what has
	 * arrived and was not handled makes one of them readable for as long. @stays: the thread is not going to send anything
	 * before. NULL: poll() is due.
	 */
	void (*rest)(struct poller *poller, bool stays);
	/** The program has begun to poll all the time, or has ceased to. On the device thread, no lock held. Or NULL. */
	void (*attend)(struct poller *poller, bool attends);
};

/* A descriptor that the device thread sleeps on. */
struct watched_fd {
	int fd;
	bool drained; /* progress.c */
	/** On the device thread, no lock held, in no epoch section. @events of epoll(7). May unwatch and close it. */
	void (*ready)(struct watched_fd *watched, uint32_t events);
	/**
	 * Of one that tells of arrivals: takes out of it what the poller does not. Any thread, several at once, in an epoch section:
	 * memory and descriptor stay until that is over. Takes no lock. NULL: the poller takes all, and this is not touched.
	 */
	void (*drain)(struct watched_fd *watched);
};

/**
 * Set before the first device is there (process/devices.c): calls @poll with a run, inside an epoch section, sees to the QPs that are
 * due after it, and returns what it returned.
 */
extern bool (*progress_in_run)(bool (*poll)(struct run *run));

/** Adds @poller, for ever; starts the thread. Returns 0 or -EAGAIN (no thread could be made). Any thread. */
int progress_add(struct poller *poller);

/** Watches @watched for @events (level triggered), starting the thread. Returns 0 or a negative errno. Any thread. */
int progress_watch(struct watched_fd *watched, uint32_t events);
/** Changes the events. */
int progress_rewatch(struct watched_fd *watched, uint32_t events);
/**
 * The same of a descriptor that is readable when something has arrived: whoever sleeps on those, the device thread or one that
 * stands in for it (substitute_poller.h), polls all pollers after that. It may be watched as well, for what else happens to it.
 */
int progress_watch_arrivals(struct watched_fd *watched, uint32_t events);
int progress_rewatch_arrivals(struct watched_fd *watched, uint32_t events);
/**
 * Ends watching, of both kinds. On return `ready` does not run and will not run, unless this is called from it or from another `ready`.
 * No lock that `ready` takes may be held.
 */
void progress_unwatch(struct watched_fd *watched);

/** The device thread, as timers see it. */
extern const struct timer_thread progress_timer_thread;
/** Starts the thread. Returns 0 or -EAGAIN. Any thread. */
int progress_start(void);
/** True if the thread runs. Any thread. */
bool progress_runs(void);
/** True on the device thread. Any thread. */
bool progress_on_thread(void);
/** Wakes the device thread: it polls all pollers and fires what is due. Any thread. */
void progress_wake(void);

/* Use progress_has_pollers(). */
extern uint32_t progress_pollers SOFTHCA_OWN;

/** True if anything may arrive: if not, polling CQs need not call progress_poll(). Any thread. */
static inline bool progress_has_pollers(void)
{
	return __atomic_load_n(&progress_pollers, __ATOMIC_RELAXED);
}

/**
 * This thread has done @works of what a program does that looks after its queues: it took completions, or what had arrived, or
 * sent a long message, which takes as long. Such a program may poll seldom, and finds completions whenever it does, as long as
 * the device thread takes what arrives in its place. Any thread, any lock.
 */
static inline void progress_worked(uint32_t works)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (likely(slot != NULL))
		__atomic_store_n(&slot->works, slot->works + works, __ATOMIC_RELAXED);
}

/** Polls all pollers once, on behalf of a program that found nothing in its CQ. False: nothing arrived. No lock held. */
bool progress_poll(void);

/**
 * A thread of the library that looks for doorbells (progress/watch.h) polls as well (@attends), for a program that makes no call at
 * all: its progress_poll() counts as that of a program that polls all the time, as long as it comes at all. When it ends, arrivals
 * wake the device thread. Once each for beginning and end; no lock held.
 */
void progress_attend_begin(void);
void progress_attend_end(void);

/**
 * Handles what has arrived, for a timer that is about to take silence for loss. False: perhaps not all, since another thread
 * is at it, or it does not end. No lock held.
 */
bool progress_look(void);

/**
 * Waits until the poll that runs now, if one does, has ended: what it took has been handled then. Not for ever, since it may be
 * that of this very thread, in a handler of a signal. Any thread, any locks.
 */
void progress_wait_for_poll(void);

/** The program is about to sleep, it armed a CQ: arrivals wake the device thread from now on. No lock held. */
void progress_before_sleep(void);

/** Of the process: changes in a forked child, where all that was registered is gone. Starts at 1. */
uint32_t progress_generation(void);
/** Around fork(): the lock is held meanwhile, so that the child finds it free. */
void progress_before_fork(void);
void progress_after_fork(bool child);

#endif
