/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue: a word that is spun for shortly, since most critical sections are shorter than going to sleep
 * and back, and slept for (futex) after that, since a large copy is not. While the process has one thread it costs no
 * locked instruction, which is more than half of what a small request costs otherwise.
 *
 * A queue whose owner promised a single thread (thread domain, MLX5_SINGLE_THREADED) elides its lock: libibverbs
 * promises thread safety only where the program did not renounce it (ibv_alloc_td(3)).
 */
#ifndef SOFTHCA_HCA_LOCK_H
#define SOFTHCA_HCA_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

enum queue_lock_state {
	QUEUE_LOCK_FREE,
	QUEUE_LOCK_HELD,
	QUEUE_LOCK_AWAITED, /* held, and somebody may be asleep */
};

struct queue_lock {
	uint32_t state; /* enum queue_lock_state, atomic */
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

/* The slow ways, in lock.c. */
void queue_lock_wait(struct queue_lock *lock);
void queue_lock_wake(struct queue_lock *lock);

static inline void queue_lock(struct queue_lock *lock)
{
	uint32_t free = QUEUE_LOCK_FREE;

	if (lock->elided)
		return;
	if (__libc_single_threaded) {
		__atomic_store_n(&lock->state, QUEUE_LOCK_HELD, __ATOMIC_RELAXED);
		return;
	}
	if (!__atomic_compare_exchange_n(&lock->state, &free, QUEUE_LOCK_HELD, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		queue_lock_wait(lock);
}

static inline void queue_unlock(struct queue_lock *lock)
{
	if (lock->elided)
		return;
	if (__libc_single_threaded) {
		__atomic_store_n(&lock->state, QUEUE_LOCK_FREE, __ATOMIC_RELAXED);
		return;
	}
	if (__atomic_exchange_n(&lock->state, QUEUE_LOCK_FREE, __ATOMIC_RELEASE) == QUEUE_LOCK_AWAITED)
		queue_lock_wake(lock);
}

#endif
