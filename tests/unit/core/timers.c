/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/timer with the device thread: no timer is early or forgotten; an earlier one wakes the thread; cancellation;
 * fork.
 */
#include <pthread.h>
#include "test_case.h"

#include <sys/wait.h>

#include "hca/hca.h"
#include "process/commands.h"

#define MS UINT64_C(1000000)
/* A busy machine may be late; a timer later than this was forgotten. */
#define LONG_MS 5000

struct counted {
	struct timer timer;
	uint32_t fired, early; /* atomic */
};

static void count(struct timer *timer)
{
	struct counted *counted = (struct counted *)timer;

	if (clock_now_ns() < timer->deadline_ns)
		__atomic_add_fetch(&counted->early, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&counted->fired, 1, __ATOMIC_RELEASE);
}

static uint32_t fired(const struct counted *counted)
{
	return __atomic_load_n(&counted->fired, __ATOMIC_ACQUIRE);
}

static bool fires_within(const struct counted *counted, uint32_t times, int ms)
{
	for (int i = 0; i < ms && fired(counted) < times; i++)
		usleep(1000);
	return fired(counted) >= times;
}

static struct timers *timers(void)
{
	return &hca_device(0)->timers;
}

#define MANY 2000

static void *arm_many(void *argument)
{
	struct counted *many = argument;

	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(timer_arm(timers(), &many[i].timer, clock_now_ns() + i % 50 * MS / 10), 0);
	return NULL;
}

TEST(all_of_two_threads)
{
	struct counted *many = calloc(2 * MANY, sizeof(*many));
	pthread_t threads[2];

	for (size_t i = 0; i < 2 * MANY; i++)
		timer_init(&many[i].timer, count);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, arm_many, many + i * MANY), 0);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < 2 * MANY; i++) {
		assert_true(fires_within(&many[i], 1, LONG_MS));
		assert_int_equal(many[i].early, 0);
	}
	for (size_t i = 0; i < 2 * MANY; i++) {
		timer_cancel(timers(), &many[i].timer);
		assert_int_equal(fired(&many[i]), 1);
	}
	free(many);
}

TEST(earlier_one_wakes)
{
	struct counted late = {.fired = 0}, soon = {.fired = 0};

	timer_init(&late.timer, count);
	timer_init(&soon.timer, count);
	assert_int_equal(timer_arm(timers(), &late.timer, clock_now_ns() + 3600 * 1000 * MS), 0);
	usleep(20000);
	assert_int_equal(timer_arm(timers(), &soon.timer, clock_now_ns() + 10 * MS), 0);
	assert_true(fires_within(&soon, 1, LONG_MS));
	/* The thread sleeps until the late timer again; another earlier one replaces it. */
	timer_cancel(timers(), &late.timer);
	assert_int_equal(timer_arm(timers(), &soon.timer, clock_now_ns() + 10 * MS), 0);
	assert_true(fires_within(&soon, 2, LONG_MS));
	assert_int_equal(fired(&late), 0);
	assert_int_equal(soon.early, 0);
}

static void arm_again(struct timer *timer)
{
	struct counted *counted = (struct counted *)timer;

	count(timer);
	if (fired(counted) < 100)
		timer_arm(timers(), timer, clock_now_ns() + MS / 10);
}

TEST(armed_by_its_function)
{
	struct counted counted = {.fired = 0};

	timer_init(&counted.timer, arm_again);
	assert_int_equal(timer_arm(timers(), &counted.timer, 0), 0);
	assert_true(fires_within(&counted, 100, LONG_MS));
	timer_cancel(timers(), &counted.timer);
	assert_int_equal(counted.early, 0);
}

static void take_time(struct timer *timer)
{
	struct counted *counted = (struct counted *)timer;

	__atomic_store_n(&counted->early, 1, __ATOMIC_RELEASE);
	usleep(20000);
	count(timer);
}

TEST(cancel_waits)
{
	struct counted counted = {.fired = 0};

	timer_init(&counted.timer, take_time);
	assert_int_equal(timer_arm(timers(), &counted.timer, 0), 0);
	while (!__atomic_load_n(&counted.early, __ATOMIC_ACQUIRE))
		usleep(100);
	timer_cancel(timers(), &counted.timer);
	assert_int_equal(fired(&counted), 1);
}

static int child(struct counted *inherited)
{
	struct counted own = {.fired = 0};

	timer_init(&own.timer, count);
	if (timer_arm(timers(), &own.timer, clock_now_ns() + MS) || !fires_within(&own, 1, LONG_MS))
		return 1;
	/* Timers of the parent are forgotten: they do not fire, and may be armed again. */
	usleep(50000);
	if (fired(inherited))
		return 2;
	if (timer_arm(timers(), &inherited->timer, clock_now_ns() + MS) || !fires_within(inherited, 1, LONG_MS))
		return 3;
	timer_cancel(timers(), &inherited->timer);
	return 0;
}

TEST(forked_child)
{
	struct counted counted = {.fired = 0};
	int status;
	pid_t pid;

	timer_init(&counted.timer, count);
	assert_int_equal(timer_arm(timers(), &counted.timer, clock_now_ns() + 30 * MS), 0);
	pid = fork();
	if (!pid)
		_exit(child(&counted));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(fires_within(&counted, 1, LONG_MS));
}
