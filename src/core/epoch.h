/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs keep a key or a QP alive while a transfer uses it (DESIGN.md). A thread that may access keys and QPs is inside
 * a section (epoch_enter … epoch_leave). Sections nest. A thread that unpublishes an object stamps it (epoch_retire)
 * and may reuse or free it once no section older than the stamp is left (epoch_passed, epoch_synchronize). A thread
 * returns its slot to the list of the process when it ends.
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

/* Enough for two struct run of 17 KiB, a workspace of 25 KiB, and streams of 4 KiB. */
#define THREAD_MEMORY_BYTES (96u << 10)

struct epoch_slot {
	uint64_t active;    /* atomic; epoch in which the section began; 0: outside any section */
	uint32_t depth;     /* owned by the thread */
	uint32_t owned;     /* atomic; 1: belongs to a living thread */
	uint32_t waits;     /* atomic; 1: in epoch_wait */
	uint32_t thread;    /* atomic; id of an owner without a thread-specific key to detach it; otherwise 0 */
	uint32_t works;     /* atomic; see progress_worked() */
	uint64_t *counters; /* atomic; of its threads (observe/counters.h), or NULL */
	/* observe/timeline.h: position and end in the thread's chunk, time of its latest clock record */
	struct timeline_record *timeline_next, *timeline_end;
	uint64_t timeline_clock;
	uint32_t timeline_lap;
	/* QP for which the thread worked last, with EPOCH_RECEIVES if for an incoming packet; for explanations */
	uint32_t qpn;
	uint8_t *memory;      /* THREAD_MEMORY_BYTES; core/thread_memory.h */
	uint32_t memory_used; /* bytes in use */
	struct epoch_slot *next;
	uint8_t scratch[EPOCH_SCRATCH_BYTES]; /* see epoch_scratch() */
} __attribute__((aligned(128)));

extern __thread struct epoch_slot *epoch_this_thread __attribute__((tls_model("initial-exec")));
extern uint64_t epoch_current SOFTHCA_OWN;

/* Slots for threads that attach when memory is exhausted. */
#define EPOCH_RESERVE 256
/* Number of them that have thread memory even if no page can be mapped. */
#define EPOCH_MEMORY_RESERVE 8

/**
 * Returns a slot for this thread. Nothing is protected without one, so this blocks until memory is available or another
 * thread ends, unless a slot is reserved. If the program uses all thread-specific keys, a slot becomes free when its
 * thread no longer exists in the kernel.
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
 * Combines epoch_enter() with an exchange of *@word to 1, in one locked instruction. Returns the previous value. Until
 * then only objects that the caller keeps alive may be accessed.
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

/** As epoch_enter_with_exchange(), with queue_lock(@lock) of a lock that is not elided. */
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

/** Records that this thread starts to work for QP @qpn (epoch_slot.qpn). Inside a section. */
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

/** Returns the first of all slots; follow `next`. Any thread may call. */
struct epoch_slot *epoch_slots(void);

/** Returns a stamp for an object to which the pointer was just removed. */
uint64_t epoch_retire(void);

/**
 * Returns true once all sections of other threads that began before @stamp have ended. The caller must have no
 * reference to the retired object.
 */
bool epoch_passed(uint64_t stamp);

/** Retires, and waits until that epoch has passed. Not inside a section. */
void epoch_synchronize(void);

/**
 * Waits, inside a section, until the sections of other threads that began before @stamp have ended, for something that
 * was revoked but not freed, such as an unbound window. Those that wait here themselves do not count, so the caller
 * must not use anything that it looked up earlier in its section (it only stays allocated), nor hold a lock that
 * another thread may need.
 */
void epoch_wait(uint64_t stamp);

/** Discards the sections of the parent's other threads, in a forked child. */
void epoch_after_fork(void);

#endif
