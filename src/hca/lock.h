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
 */
#ifndef SOFTHCA_HCA_LOCK_H
#define SOFTHCA_HCA_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct queue_lock {
	uint32_t held;     /* atomic; 0 or 1; futex word of the sleepers */
	uint32_t sleepers; /* atomic; threads that sleep or are about to */
	bool elided;
};

/** Prepares a lock. @elided: true if one thread only will ever use the queue. */
static inline void queue_lock_init(struct queue_lock *lock, bool elided)
{
	*lock = (struct queue_lock){.elided = elided};
}

static inline void queue_lock_destroy(struct queue_lock *lock)
{
	(void)lock;
}

/**
 * A full barrier on all CPUs that run a thread of this process (membarrier(2)): who calls it rarely spares those who would
 * need one often. Returns false where the kernel has none.
 */
bool barrier_on_all_cpus(void);

/* The slow ways, in lock.c. */
void queue_lock_wait(struct queue_lock *lock);
void queue_lock_wake(struct queue_lock *lock);

static inline void queue_lock(struct queue_lock *lock)
{
	if (lock->elided)
		return;
	if (__libc_single_threaded)
		__atomic_store_n(&lock->held, 1, __ATOMIC_RELAXED);
	else if (__builtin_expect(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE), 0))
		queue_lock_wait(lock);
}

static inline void queue_unlock(struct queue_lock *lock)
{
	if (lock->elided)
		return;
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
	/* The compiler keeps the order; the processor is kept to it by the sleeper's barrier. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED), 0))
		queue_lock_wake(lock);
}

#endif
