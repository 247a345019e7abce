/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a queue's lock, see lock.h. */
#include "hca/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About 2 us: longer than any critical section but a large copy, shorter than a wake-up across CPUs. */
#define SPINS 80
/* Where the kernel has no membarrier(2), a sleeper that was missed looks again after this time. */
#define LOOK_AGAIN_NS 1000000

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static bool take(struct queue_lock *lock)
{
	return !__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
}

/* Registration is idempotent and lasts for the process; the first use registers. Returns false without membarrier. */
bool barrier_on_all_cpus(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return true;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		return false;
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void sleep_once(struct queue_lock *lock)
{
	const struct timespec look_again = {0, LOOK_AGAIN_NS};
	bool ordered = barrier_on_all_cpus();

	if (!__atomic_load_n(&lock->held, __ATOMIC_SEQ_CST))
		return;
	syscall(SYS_futex, &lock->held, FUTEX_WAIT_PRIVATE, 1, ordered ? NULL : &look_again, NULL, 0);
}

void queue_lock_wait(struct queue_lock *lock)
{
	for (int i = 0; i < SPINS; i++) {
		if (take(lock))
			return;
		pause_cpu();
	}
	__atomic_add_fetch(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
	while (!take(lock))
		sleep_once(lock);
	__atomic_sub_fetch(&lock->sleepers, 1, __ATOMIC_RELAXED);
}

void queue_lock_wake(struct queue_lock *lock)
{
	syscall(SYS_futex, &lock->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
