/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue: a word that is spun for shortly, since most critical sections are shorter than going to sleep
 * and back, and slept for (futex) after that, since a large copy is not.
 *
 * Locked instructions are half of what a small request costs, so there is one per round, in queue_lock; unlocking is a
 * store and a load. The order of these two, without which a sleeper could be missed, is made by the sleeper: it runs a
 * barrier on all CPUs of the process (membarrier(2)) between announcing itself and its last look. While the process
 * has one thread there is no locked instruction at all.
 *
 * A queue whose owner promised a single thread (thread domain, MLX5_SINGLE_THREADED) elides its lock: libibverbs
 * promises thread safety only where the program did not renounce it (ibv_alloc_td(3)).
 *
 * The process knows all its queue locks but the elided ones, by level (core/locks.def), so that fork(2) can hold them. Hence
 * a lock is initialised and destroyed while its thread holds none.
 */
#ifndef SOFTHCA_CORE_LOCK_H
#define SOFTHCA_CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

#include "core/lock_order.h"

struct queue_lock {
	uint32_t held;     /* atomic; 0 or 1; futex word of the sleepers */
	uint32_t sleepers; /* atomic; threads that sleep or are about to */
	bool elided;
	bool forking;                    /* held by the thread that forks, which alone looks at this */
	uint8_t level;                   /* enum lock_level */
	struct queue_lock *next, **link; /* in the list of its level; link NULL: in none */
};

/* The levels of queue locks: a thread that holds one takes none of an earlier level. */
enum lock_level {
#define LOCK_OF_OBJECTS(LEVEL, file, member, covers) LOCK_LEVEL_##LEVEL,
#include "core/locks.def"
	LOCK_LEVELS
};

/** Enters @lock into the list of @level, or takes it out if it is in one (lock.c). No lock may be held. Any thread. */
void queue_lock_list(struct queue_lock *lock, enum lock_level level);
void queue_lock_unlist(struct queue_lock *lock);

/** Prepares a lock. @elided: true if one thread only will ever use the queue. No lock may be held. */
static inline void queue_lock_init(struct queue_lock *lock, enum lock_level level, bool elided)
{
	*lock = (struct queue_lock){.elided = elided, .level = (uint8_t)level};
	if (!elided)
		queue_lock_list(lock, level);
}

/** Also of a lock that is all zeros. No lock may be held. */
static inline void queue_lock_destroy(struct queue_lock *lock)
{
	if (!lock->elided)
		queue_lock_unlist(lock);
}

/*
 * Around fork(2). The lists are locked first (queue_lists_before_fork) and then, in its turn, each level. A lock that is not
 * free within a while belongs to a thread that is between two calls of the program (ibv_wr_start(3), ibv_start_poll(3)),
 * perhaps to the one that forks: that one is left, and the child finds it free. On the forking thread only.
 */
void queue_lists_before_fork(void);
void queue_locks_before_fork(enum lock_level level);
void queue_lists_after_fork(bool child);
/** Calls @visit with each lock of @level, in a forked child that has all of them back and no other thread yet. */
void queue_locks_visit(enum lock_level level, void (*visit)(struct queue_lock *lock));

/**
 * A full barrier on all CPUs that run a thread of this process (membarrier(2)): calling it rarely spares those who would
 * need one often. Returns false where the kernel has none.
 */
bool barrier_on_all_cpus(void);

/* The slow ways, in lock.c. */
void queue_lock_wait(struct queue_lock *lock);
void queue_lock_wake(struct queue_lock *lock);

/**
 * queue_lock() without its wait: false if another thread holds @lock, which is not taken then. A function that leaves waiting
 * to another one, which calls queue_lock(), keeps nothing across a call.
 */
static inline bool queue_lock_at_once(struct queue_lock *lock)
{
	lock_order_waits(lock);
	/* While there is one thread nobody looks at the word, so it does not matter if the lock is elided. */
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

/** As queue_lock(), but does not wait: false if somebody holds @lock. Not of an elided lock. */
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

/** queue_unlock() without its wake: true if the caller has to call queue_lock_wake() next. */
static inline bool queue_unlock_wakes(struct queue_lock *lock)
{
	/* All of this does nothing to an elided lock, which nobody holds and nobody waits for. */
	lock_order_left(lock);
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	/* The compiler keeps the order; the processor is kept to it by the sleeper's barrier. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __builtin_expect(__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED), 0);
}

static inline void queue_unlock(struct queue_lock *lock)
{
	if (queue_unlock_wakes(lock))
		queue_lock_wake(lock);
}

#endif
