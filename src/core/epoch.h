/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs: how a key or a QP in use by a running transfer cannot disappear under it, without a reference count that
 * all threads would write to.
 *
 * A thread that may look at keys and QPs is inside a section (epoch_enter … epoch_leave); its slot, a cache line of
 * its own, says since which epoch. A thread that takes something out of reach stamps it (epoch_retire) and may reuse or free
 * it once no section older than the stamp is left (epoch_passed, or epoch_synchronize to wait for it).
 *
 * What was taken back but not freed (a window that was unbound) can be waited for inside a section, with epoch_wait.
 *
 * Slots belong to threads and stay in one list of the process for reuse; a thread returns its slot when it ends.
 * Sections nest. epoch_synchronize must not be called inside one.
 */
#ifndef SOFTHCA_CORE_EPOCH_H
#define SOFTHCA_CORE_EPOCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

#include "core/lock.h"
#include "core/visibility.h"

struct timeline_record;

/* A WQE of mlx5 has at most 63 units of 16 bytes. */
#define EPOCH_SCRATCH_BYTES 1024

/* See core/thread_memory.h: two struct run of 17 KiB, a workspace of 25 KiB, and streams of 4 KiB. */
#define THREAD_MEMORY_BYTES (96u << 10)

struct epoch_slot {
	uint64_t active;    /* atomic; 0: outside of any section, else the epoch at its beginning */
	uint32_t depth;     /* of nesting; the owning thread's */
	uint32_t owned;     /* atomic; 1: belongs to a living thread */
	uint32_t waits;     /* atomic; 1: in epoch_wait */
	uint32_t thread;    /* atomic; id of the owning thread, only if there is no key that detaches it; else 0 */
	uint32_t works;     /* atomic; of its threads, see progress_worked() (progress/progress.h) */
	uint64_t *counters; /* atomic; what its threads have counted (observe/counters.h), or NULL */
	/* Where its thread records next, and till where, and when it last recorded the clock; observe/timeline.h */
	struct timeline_record *timeline_next, *timeline_end;
	uint64_t timeline_clock;
	uint32_t timeline_lap;
	/* Queue pair that its thread last began to work for, with EPOCH_RECEIVES if for a packet that had arrived: for explanations */
	uint32_t qpn;
	uint8_t *memory;      /* of the owning thread, THREAD_MEMORY_BYTES; see core/thread_memory.h */
	uint32_t memory_used; /* bytes of it */
	struct epoch_slot *next;
	uint8_t scratch[EPOCH_SCRATCH_BYTES]; /* of the owning thread; see epoch_scratch() */
} __attribute__((aligned(128)));

extern __thread struct epoch_slot *epoch_this_thread __attribute__((tls_model("initial-exec")));
extern uint64_t epoch_current SOFTHCA_OWN;

/* Slots for threads that come while there is no memory. */
#define EPOCH_RESERVE 256
/* Of these, those that get memory although no page can be mapped. */
#define EPOCH_MEMORY_RESERVE 8

/**
 * Returns a slot for this thread. Waits for memory, or for the end of another thread, while there is neither memory nor a slot in
 * reserve, since nothing would be protected without a slot. Needs no thread-specific key: if the program has taken all of them, a
 * slot is free again when the kernel knows its thread no more.
 */
struct epoch_slot *epoch_attach(void);

/** Begins a section. Any thread. */
static inline void epoch_enter(void)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (__builtin_expect(!slot, 0))
		slot = epoch_attach();
	if (slot->depth++ != 0)
		return;
	/* The exchange orders the mark before every later load of a key. Alone in the process there is no order to keep. */
	if (__libc_single_threaded)
		__atomic_store_n(&slot->active, epoch_current, __ATOMIC_RELAXED);
	else
		__atomic_exchange_n(&slot->active, __atomic_load_n(&epoch_current, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
}

/**
 * epoch_enter() and an exchange of *@word, which becomes 1, at the price of one: the exchange orders the mark as well. Returns
 * what *@word was. Nothing may be looked at before but what the caller keeps alive.
 */
static inline uint32_t epoch_enter_with_exchange(uint32_t *word)
{
	struct epoch_slot *slot = epoch_this_thread;
	uint32_t before;

	if (__builtin_expect(!slot, 0))
		slot = epoch_attach();
	if (slot->depth++ == 0)
		__atomic_store_n(&slot->active, __atomic_load_n(&epoch_current, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
	before = __atomic_exchange_n(word, 1, __ATOMIC_SEQ_CST);
#ifndef __x86_64__
	/* There an exchange is a barrier by itself. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return before;
}

/**
 * epoch_enter() and queue_lock(@lock), which is not elided, at the price of one: the exchange that takes the lock orders the
 * mark as well. Nothing may be looked at before but what the caller keeps alive, such as the lock itself.
 */
static inline void epoch_enter_with_lock(struct queue_lock *lock)
{
	if (__libc_single_threaded) {
		epoch_enter();
		__atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
		return;
	}
	if (__builtin_expect(epoch_enter_with_exchange(&lock->held), 0))
		queue_lock_wait(lock);
}

#define EPOCH_RECEIVES (1u << 31)

/** Notes that this thread begins to work for queue pair @qpn, see epoch_slot.qpn. Inside a section. */
static inline void epoch_note(uint32_t qpn)
{
	epoch_this_thread->qpn = qpn;
}

/** EPOCH_SCRATCH_BYTES that belong to this thread, until the next call. */
static inline uint8_t *epoch_scratch(void)
{
	struct epoch_slot *slot = epoch_this_thread;

	return (slot ? slot : epoch_attach())->scratch;
}

/** Ends a section. */
static inline void epoch_leave(void)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (--slot->depth == 0)
		__atomic_store_n(&slot->active, 0, __ATOMIC_RELEASE);
}

/** All slots ever made: follow `next`. Any thread. */
struct epoch_slot *epoch_slots(void);

/** Stamps what was just taken out of reach. The pointer to it must have been unpublished before. */
uint64_t epoch_retire(void);

/**
 * True once no section of another thread began before @stamp. The calling thread's own section does not count: the
 * caller holds nothing of what was retired.
 */
bool epoch_passed(uint64_t stamp);

/** Retires and waits until it has passed. Not inside a section. */
void epoch_synchronize(void);

/**
 * Waits, inside a section, until the sections of others that began before @stamp have ended: what was taken out of reach
 * before @stamp is used no more. Sections that wait here themselves do not count, so the caller, too, must use nothing
 * that it found in its section before (but what is merely not to be freed), and hold no lock that others may want.
 */
void epoch_wait(uint64_t stamp);

/** In a forked child: the other threads are gone, their sections with them. */
void epoch_after_fork(void);

#endif
