/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a queue's lock, see lock.h. */
#include "hca/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 2 us: longer than any critical section but a large copy, shorter than a wake-up across CPUs. */
#define SPINS 80

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static bool take(struct queue_lock *lock, uint32_t as)
{
	uint32_t free = QUEUE_LOCK_FREE;

	return __atomic_load_n(&lock->state, __ATOMIC_RELAXED) == QUEUE_LOCK_FREE &&
	       __atomic_compare_exchange_n(&lock->state, &free, as, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void queue_lock_wait(struct queue_lock *lock)
{
	for (int i = 0; i < SPINS; i++) {
		if (take(lock, QUEUE_LOCK_HELD))
			return;
		pause_cpu();
	}
	/* Whoever slept cannot know whether others still do: it takes the lock as awaited. */
	while (__atomic_exchange_n(&lock->state, QUEUE_LOCK_AWAITED, __ATOMIC_ACQUIRE) != QUEUE_LOCK_FREE)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, QUEUE_LOCK_AWAITED, NULL, NULL, 0);
}

void queue_lock_wake(struct queue_lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
