/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs keep a key or a QP alive while a transfer uses it, without a reference count to which all threads would write.
 *
 * A thread that may access keys and QPs is inside a section (epoch_enter … epoch_leave). Its slot, a cache line of its
 * own, records the epoch in which the section began. A thread that unpublishes an object stamps it (epoch_retire) and
 * may reuse or free it once no section older than the stamp is left (epoch_passed, or epoch_synchronize to wait for
 * it). epoch_wait waits, inside a section, for users of something that was revoked but not freed, such as an unbound
 * window.
 *
 * Slots belong to threads and stay in one list of the process for reuse; a thread returns its slot when it ends.
 * Sections nest. epoch_synchronize must not be called inside one.
 */
#ifndef SOFTHCA_CORE_EPOCH_H
#define SOFTHCA_CORE_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"
#include "core/lock.h"
#include "core/single_threaded.h"
#include "core/visibility.h"

struct timeline_record;

/* A WQE of mlx5 has at most 63 units of 16 bytes. */
#define EPOCH_SCRATCH_BYTES 1024

/* Enough for two struct run of 17 KiB, a workspace of 25 KiB, and streams of 4 KiB; see core/thread_memory.h. */
#define THREAD_MEMORY_BYTES (96u << 10)

struct epoch_slot {
	uint64_t active;    /* atomic; epoch at the beginning of the section; 0: outside any section */
	uint32_t depth;     /* nesting depth; owned by the thread */
	uint32_t owned;     /* atomic; 1: belongs to a living thread */
	uint32_t waits;     /* atomic; 1: in epoch_wait */
	uint32_t thread;    /* atomic; id of the owning thread if no thread-specific key could be created to detach it;
			 * otherwise 0 */
	uint32_t works;     /* atomic; work done by its threads, see progress_worked() (progress/progress.h) */
	uint64_t *counters; /* atomic; counters of its threads (observe/counters.h), or NULL */
	/*
	 * Position and end in the thread's timeline chunk, and the time of its latest clock record; observe/timeline.h
	 */
	struct timeline_record *timeline_next, *timeline_end;
	uint64_t timeline_clock;
	uint32_t timeline_lap;
	/*
	 * Queue pair for which the thread worked most recently, with EPOCH_RECEIVES if for an incoming packet; for
	 * explanations
	 */
	uint32_t qpn;
	uint8_t *memory;      /* memory of the owning thread, THREAD_MEMORY_BYTES; see core/thread_memory.h */
	uint32_t memory_used; /* bytes in use */
	struct epoch_slot *next;
	uint8_t scratch[EPOCH_SCRATCH_BYTES]; /* scratch memory of the owning thread; see epoch_scratch() */
} __attribute__((aligned(128)));

extern __thread struct epoch_slot *epoch_this_thread __attribute__((tls_model("initial-exec")));
extern uint64_t epoch_current SOFTHCA_OWN;

/* Slots reserved for threads that attach when memory is exhausted. */
#define EPOCH_RESERVE 256
/* Number of these slots that have thread memory even if no page can be mapped. */
#define EPOCH_MEMORY_RESERVE 8

/**
 * Returns a slot for this thread. Without a slot nothing is protected, so if there is neither memory nor a reserved
 * slot, blocks until memory is available or another thread ends. Works without a thread-specific key: if the program
 * has used up all keys, a slot becomes free when its thread no longer exists in the kernel.
 */
struct epoch_slot *epoch_attach(void);

/** Begins a section. Any thread may call. */
static inline void epoch_enter(void)
{
	struct epoch_slot *slot = epoch_this_thread;

	if (__builtin_expect(!slot, 0))
		slot = epoch_attach();
	if (slot->depth++ != 0)
		return;
	/* The exchange orders the mark before every later load of a key. A single-threaded process does not need it. */
	if (__libc_single_threaded) {
		__atomic_store_n(&slot->active, epoch_current, __ATOMIC_RELAXED);
		return;
	}
	__atomic_exchange_n(&slot->active, __atomic_load_n(&epoch_current, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
	order_after_exchange();
}

/**
 * Combines epoch_enter() with an exchange of *@word, which becomes 1, for the price of one locked instruction: the
 * exchange also orders the mark. Returns the previous value of *@word. Before it returns, only objects that the caller
 * keeps alive may be accessed.
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
	order_after_exchange();
	return before;
}

/**
 * Combines epoch_enter() with queue_lock(@lock), which is not elided, for the price of one locked instruction: the
 * exchange that takes the lock also orders the mark. Before it returns, only objects that the caller keeps alive, such
 * as the lock itself, may be accessed.
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

/** Records that this thread starts to work for queue pair @qpn, see epoch_slot.qpn. Inside a section. */
static inline void epoch_note(uint32_t qpn)
{
	epoch_this_thread->qpn = qpn;
}

/** Returns EPOCH_SCRATCH_BYTES of memory of this thread, valid until the next call. */
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

/** Returns the first of all slots ever made; follow `next`. Any thread may call. */
struct epoch_slot *epoch_slots(void);

/** Returns a stamp for an object that was just unpublished. The pointer to it must have been removed before. */
uint64_t epoch_retire(void);

/**
 * Returns true once all sections of other threads that began before @stamp have ended. The caller's own section does
 * not count, so the caller must not have a reference to the retired object.
 */
bool epoch_passed(uint64_t stamp);

/** Retires, and waits until that epoch has passed. Not inside a section. */
void epoch_synchronize(void);

/**
 * Waits, inside a section, until the sections of other threads that began before @stamp have ended, so that objects
 * unpublished before @stamp are not in use any more. Sections that wait here themselves do not count. Therefore the
 * caller must not use anything that it looked up earlier in its section (it only stays allocated), and must not hold a
 * lock that another thread may need.
 */
void epoch_wait(uint64_t stamp);

/** Discards the sections of the parent's other threads, in a forked child. */
void epoch_after_fork(void);

#endif
