/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping and waking of the shm link (link/shm/wake.c): when a process that goes to sleep interrupts others with a
 * barrier, and that no process sleeps while a record is pending, whichever side has the barrier.
 */
#include "test_case.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>

#include "link/shm/peer.h"

enum { RECORDS = 10000, SLEEPS = 100, SOON_S = 20 };

/* The two ends of a connection; the poller of this process belongs to `sleeper`. */
static struct shm_state sleepers_state, senders_state;
static struct host_peer sleepers_host, senders_host;
static struct shm_peer sleeper, sender;

static bool refused; /* membarrier(2) */
static unsigned int barriers;
static sem_t woken;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
struct host_peer *__wrap_host_peers(void);
void __wrap_host_wake(struct host_peer *peer);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_membarrier && refused) {
		errno = ENOSYS;
		return -1;
	}
	barriers += number == SYS_membarrier && a == MEMBARRIER_CMD_GLOBAL_EXPEDITED;
	return __real_syscall(number, a, b, c, d, e, f);
}

struct host_peer *__wrap_host_peers(void)
{
	return &sleepers_host;
}

void __wrap_host_wake(struct host_peer *peer)
{
	assert_ptr_equal(peer, &senders_host);
	sem_post(&woken);
}

static void make_end(struct shm_peer *end, struct host_peer *host, struct shm_state *own, const struct shm_state *other)
{
	*own = (struct shm_state){.sleeps = 0};
	*end = (struct shm_peer){.host = host, .own = own, .other = other, .tried_direct = true};
	*host = (struct host_peer){.shm = end};
	shm_wake_prepare(end);
}

static void make_ends(bool without)
{
	refused = without;
	make_end(&sleeper, &sleepers_host, &sleepers_state, &senders_state);
	make_end(&sender, &senders_host, &senders_state, &sleepers_state);
	barriers = 0;
}

static void arm(bool armed)
{
	shm_arm(&shm_poller.poller, armed);
}

/* The kernel may really lack membarrier(2). */
static bool has_barrier(void)
{
	make_ends(false);
	return sleeper.has_barrier;
}

TEST(one_that_sleeps_after_each_message_interrupts_once)
{
	if (!has_barrier())
		skip();
	for (int i = 0; i < SLEEPS; i++) {
		arm(true);
		assert_int_equal(sleepers_state.sleeps, 1);
		shm_wake(&sender, false);
		assert_int_equal(sleepers_state.sleeps, 0);
		assert_int_equal(sem_trywait(&woken), 0);
	}
	assert_int_equal(barriers, 1);
}

TEST(one_that_polls_again_spares_the_other_side)
{
	if (!has_barrier())
		skip();
	arm(true);
	assert_int_equal(sleepers_state.barrier, 0);
	arm(false);
	assert_int_equal(sleepers_state.sleeps, 0);
	assert_int_equal(sleepers_state.barrier, 1);
	assert_int_equal(barriers, 1);
	/* The other side checks without a barrier again. */
	arm(true);
	assert_int_equal(barriers, 2);
	/* A process that was woken does not sleep, and may then begin to poll. */
	shm_wake(&sender, false);
	assert_int_equal(sem_trywait(&woken), 0);
	arm(false);
	assert_int_equal(sleepers_state.barrier, 1);
}

TEST(without_membarrier_the_other_side_pays_always)
{
	make_ends(true);
	assert_false(sleeper.has_barrier);
	for (int i = 0; i < SLEEPS; i++) {
		assert_int_equal(sleepers_state.barrier, 0);
		arm(i % 2);
	}
	assert_int_equal(barriers, 0);
}

/* ---- no sleep while a record is pending ------------------------------------------------------------------------- */

static uint32_t published __attribute__((aligned(64))); /* atomic */
static uint32_t taken __attribute__((aligned(64)));     /* atomic */

static void *send_records(void *argument)
{
	(void)argument;
	for (uint32_t i = 1; i <= RECORDS; i++) {
		__atomic_store_n(&published, i, __ATOMIC_RELEASE);
		shm_wake(&sender, false);
		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != i)
			pause_cpu();
	}
	return NULL;
}

/* @polls: number of records after which it polls for a moment; 0: never. */
static void take_records(unsigned int polls)
{
	struct timespec until;
	pthread_t thread;

	published = taken = 0;
	assert_int_equal(pthread_create(&thread, NULL, send_records, NULL), 0);
	for (uint32_t i = 1; i <= RECORDS; i++) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SOON_S;
		if (polls && i % polls == 0)
			arm(false);
		for (arm(true); __atomic_load_n(&published, __ATOMIC_ACQUIRE) != i; arm(true))
			assert_int_equal(sem_timedwait(&woken, &until), 0);
		__atomic_store_n(&taken, i, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	while (!sem_trywait(&woken))
		;
}

TEST(no_record_is_missed)
{
	make_ends(false);
	take_records(0);
	make_ends(false);
	take_records(7);
	make_ends(true);
	take_records(0);
	/* One of the two may lack membarrier(2). */
	make_ends(false);
	senders_state.barrier = 0;
	take_records(7);
}

int main(void)
{
	sem_init(&woken, 0, 0);
	return run_cases();
}
