/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a queue lock; lists for fork(2). */
#include "core/lock.h"

#include "core/compiler.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About 2 us: longer than any critical section except a large copy, shorter than a wake-up across CPUs. */
#define SPINS 80
/* Without membarrier(2), a sleeper that missed its wake-up checks again after this time. */
#define LOOK_AGAIN_NS 1000000

static bool lock_take_once(struct queue_lock *lock)
{
	return !__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
}

/* Registers at the first use; registration lasts for the process. */
bool barrier_on_all_cpus(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return true;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		return false;
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void lock_sleep(struct queue_lock *lock)
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
		if (lock_take_once(lock))
			return;
		pause_cpu();
	}
	__atomic_add_fetch(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
	while (!lock_take_once(lock))
		lock_sleep(lock);
	__atomic_sub_fetch(&lock->sleepers, 1, __ATOMIC_RELAXED);
}

void queue_lock_wake(struct queue_lock *lock)
{
	syscall(SYS_futex, &lock->held, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- lists, for fork ------------------------------------------------------------------------------------------- */

/* Limit of all waits of a fork for sessions of the program, which may in turn wait for the forking thread. */
#define FORK_WAITS_NS 50000000

static struct {
	pthread_mutex_t lock;
	struct queue_lock *first[LOCK_LEVELS];
	uint64_t waits_until_ns; /* CLOCK_MONOTONIC; 0: the current fork has not waited */
} lists = {.lock = PTHREAD_MUTEX_INITIALIZER};

void queue_lock_list(struct queue_lock *lock, enum lock_level level)
{
	pthread_mutex_lock(&lists.lock);
	lock->next = lists.first[level];
	lock->link = &lists.first[level];
	if (lock->next)
		lock->next->link = &lock->next;
	lists.first[level] = lock;
	pthread_mutex_unlock(&lists.lock);
}

void queue_lock_unlist(struct queue_lock *lock)
{
	pthread_mutex_lock(&lists.lock);
	if (lock->link) {
		*lock->link = lock->next;
		if (lock->next)
			lock->next->link = lock->link;
		lock->link = NULL;
	}
	pthread_mutex_unlock(&lists.lock);
}

static uint64_t fork_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool lock_take_for_fork(struct queue_lock *lock)
{
	while (!lock_take_once(lock)) {
		if (!lists.waits_until_ns)
			lists.waits_until_ns = fork_clock_ns() + FORK_WAITS_NS;
		else if (fork_clock_ns() > lists.waits_until_ns)
			return false;
		sched_yield();
	}
	return true;
}

void queue_lists_before_fork(void)
{
	pthread_mutex_lock(&lists.lock);
	lists.waits_until_ns = 0;
}

void queue_locks_before_fork(enum lock_level level)
{
	for (struct queue_lock *lock = lists.first[level]; lock; lock = lock->next)
		lock->forking = lock_take_for_fork(lock);
}

static void lock_release_after_fork(struct queue_lock *lock, bool child)
{
	if (child) {
		lock->held = 0;
		lock->sleepers = 0;
	} else if (lock->forking) {
		queue_unlock(lock);
	}
	lock->forking = false;
}

void queue_lists_after_fork(bool child)
{
	for (int level = 0; level < LOCK_LEVELS; level++)
		for (struct queue_lock *lock = lists.first[level]; lock; lock = lock->next)
			lock_release_after_fork(lock, child);
	pthread_mutex_unlock(&lists.lock);
}

void queue_locks_visit(enum lock_level level, void (*visit)(struct queue_lock *lock))
{
	for (struct queue_lock *lock = lists.first[level]; lock; lock = lock->next)
		visit(lock);
}
