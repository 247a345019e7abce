/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a queue. An adaptive mutex: a short critical section of a peer is spun out, a long copy is slept out.
 * A queue whose owner promised a single thread (thread domain, MLX5_SINGLE_THREADED) elides it: libibverbs promises
 * thread safety only where the program did not renounce it (ibv_alloc_td(3)).
 */
#ifndef SOFTHCA_HCA_LOCK_H
#define SOFTHCA_HCA_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct queue_lock {
	pthread_mutex_t mutex;
	bool elided;
};

/** Prepares a lock. @elided: true if one thread only will ever use the queue. */
static inline void queue_lock_init(struct queue_lock *lock, bool elided)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	lock->elided = elided;
}

static inline void queue_lock_destroy(struct queue_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static inline void queue_lock(struct queue_lock *lock)
{
	if (!lock->elided)
		pthread_mutex_lock(&lock->mutex);
}

static inline void queue_unlock(struct queue_lock *lock)
{
	if (!lock->elided)
		pthread_mutex_unlock(&lock->mutex);
}

#endif
