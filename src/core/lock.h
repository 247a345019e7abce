/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue: a word on which a thread spins, then sleeps (DESIGN.md). A queue elides its lock if the program
 * promised to use it on a single thread (ibv_alloc_td(3), MLX5_SINGLE_THREADED).
 *
 * The process lists all other locks by level (core/locks.def), so that fork(2) can hold them. Hence a lock is
 * initialised and destroyed while its thread holds none.
 */
#ifndef SOFTHCA_CORE_LOCK_H
#define SOFTHCA_CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock_order.h"
#include "core/single_threaded.h"

struct queue_lock {
	uint32_t held;     /* atomic; 0 or 1; futex word */
	uint32_t sleepers; /* atomic; threads that sleep or are about to */
	bool elided;
	bool forking;                    /* held by the forking thread, which alone uses this */
	uint8_t level;                   /* enum lock_level */
	struct queue_lock *next, **link; /* in the list of its level; link NULL: not listed */
};

/* A thread that holds a lock takes none of an earlier level. */
enum lock_level {
#define LOCK_OF_OBJECTS(LEVEL, file, member, covers) LOCK_LEVEL_##LEVEL,
#include "core/locks.def"
	LOCK_LEVELS
};

/** Adds @lock to the list of @level, or removes it if listed. No lock may be held. Any thread may call. */
void queue_lock_list(struct queue_lock *lock, enum lock_level level);
void queue_lock_unlist(struct queue_lock *lock);

/** @elided: only one thread will ever use the queue. No lock may be held. */
static inline void queue_lock_init(struct queue_lock *lock, enum lock_level level, bool elided)
{
	*lock = (struct queue_lock){.elided = elided, .level = (uint8_t)level};
	if (!elided)
		queue_lock_list(lock, level);
}

/** @lock may be all zeros. No lock may be held. */
static inline void queue_lock_destroy(struct queue_lock *lock)
{
	if (!lock->elided)
		queue_lock_unlist(lock);
}

/*
 * Handlers around fork(2), on the forking thread: the lists are locked first, then each level in order. A lock that
 * stays taken for a while belongs to a thread between two calls of the program (ibv_wr_start(3), ibv_start_poll(3)),
 * possibly the forking one: it is skipped, and the child finds it free.
 */
void queue_lists_before_fork(void);
void queue_locks_before_fork(enum lock_level level);
void queue_lists_after_fork(bool child);
/** Calls @visit with each lock of @level, in a forked child with all locks released and one thread. */
void queue_locks_visit(enum lock_level level, void (*visit)(struct queue_lock *lock));

/**
 * Executes a full barrier on all CPUs that run a thread of this process (membarrier(2)), so that other threads need no
 * frequent ones. Returns false if the kernel does not support it.
 */
bool barrier_on_all_cpus(void);

/* Slow paths, in lock.c. */
void queue_lock_wait(struct queue_lock *lock);
void queue_lock_wake(struct queue_lock *lock);

/** As queue_lock(), but returns false instead of waiting, so that the caller need not save registers. */
static inline bool queue_lock_at_once(struct queue_lock *lock)
{
	lock_order_waits(lock);
	/* A single-threaded process never checks the word, so eliding does not matter. */
	if (__builtin_expect(__libc_single_threaded, 1))
		__atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
	else if (!lock->elided && __builtin_expect(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE), 0))
		return false;
	lock_order_taken(lock);
	return true;
}

static inline void queue_lock(struct queue_lock *lock)
{
	if (__builtin_expect(queue_lock_at_once(lock), 1))
		return;
	queue_lock_wait(lock);
	lock_order_taken(lock);
}

/** Takes @lock without waiting; returns false if another thread holds it. Not for an elided lock. */
static inline bool queue_try_lock(struct queue_lock *lock)
{
	if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
		return false;
	if (__libc_single_threaded)
		__atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
	else if (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		return false;
	lock_order_taken(lock);
	return true;
}

/** Unlocks without waking; returns true if the caller must call queue_lock_wake() next. */
static inline bool queue_unlock_wakes(struct queue_lock *lock)
{
	/* No effect on an elided lock, which is never held or waited for. */
	lock_order_left(lock);
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	/* Orders the compiler only; the sleeper's barrier orders the processor. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED), 0);
}

static inline void queue_unlock(struct queue_lock *lock)
{
	if (queue_unlock_wakes(lock))
		queue_lock_wake(lock);
}

#endif
