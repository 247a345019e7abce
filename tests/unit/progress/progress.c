/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which programs the device thread treats as polling their queues, so that arrivals need not wake it. Messages arrive
 * on a link of the test, at the request of the test.
 */
#include "test_case.h"

#include <time.h>

#include "../support/arrivals.h"
#include "core/epoch.h"
#include "process/commands.h"

/* Long enough for the thread to check several times, even on a busy machine. */
#define WHILE_NS UINT64_C(200000000)

/* Makes a message arrive while the program does @works, without polling. */
static void arrive_while_it_works(uint32_t works)
{
	progress_worked(works);
	arrive();
}

static int make(void **state)
{
	(void)state;
	/* The thread counts the work of other threads. */
	epoch_enter();
	epoch_leave();
	arrivals_link.repeats = true;
	return !hca_device(0) || progress_add(&arrivals_link);
}

/* For a program that makes no calls, the thread is woken each time. */
TEST(one_that_makes_no_call)
{
	uint64_t end = clock_now_ns() + WHILE_NS;

	arrivals_become_armed();
	while (clock_now_ns() < end) {
		arrive();
		assert_true(arrivals_armed());
	}
}

/*
 * For a program that takes completions now and then, it is not woken until the program stops, although its polls never
 * come back empty.
 */
TEST(a_poller_that_takes_available_completions)
{
	uint64_t deadline = clock_now_ns() + ARRIVALS_PATIENCE_NS;

	arrivals_become_armed();
	while (arrivals_armed()) {
		assert_true(clock_now_ns() < deadline);
		arrive_while_it_works(2);
	}
	arrivals_become_armed();
	arrive();
	assert_true(arrivals_armed());
}

/* For a program that sleeps until its CQ has an event, it is woken each time. */
TEST(one_that_sleeps)
{
	for (int i = 0; i < 200; i++) {
		arrive_while_it_works(2);
		progress_before_sleep();
		arrivals_become_armed();
	}
}

/* One that sends in a row handles arrivals after every fourth packet, and counts as polling. */
TEST(one_that_sends)
{
	uint64_t deadline = clock_now_ns() + ARRIVALS_PATIENCE_NS;
	uint32_t before;

	progress_poll();
	for (uint32_t i = 1; i < 4; i++) {
		progress_sent();
		progress_after_sending();
		assert_int_equal(progress_unpolled, i);
	}
	before = __atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE);
	__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
	progress_sent();
	progress_after_sending();
	assert_int_equal(progress_unpolled, 0);
	/* The device thread may be about to take it. */
	while (__atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE) == before)
		assert_true(clock_now_ns() < deadline);
	arrivals_become_armed();
	while (arrivals_armed()) {
		assert_true(clock_now_ns() < deadline);
		progress_sent();
		progress_after_sending();
	}
}

static __thread uint32_t lazy_polls; /* by this thread */

static bool lazy_poll(struct poller *poller, struct run *run)
{
	(void)poller;
	(void)run;
	lazy_polls++;
	return false;
}

static bool lazy_idle(struct poller *poller)
{
	(void)poller;
	return true;
}

static void lazy_arm(struct poller *poller, bool armed)
{
	(void)poller;
	(void)armed;
}

/* A poll of the program leaves out a link that may wait, though something has arrived on another. */
TEST(one_link_is_idle)
{
	static struct poller lazy = {.poll = lazy_poll, .idle = lazy_idle, .arm = lazy_arm};
	uint64_t end = clock_now_ns() + WHILE_NS;
	uint32_t found = 0;

	assert_int_equal(progress_add(&lazy), 0);
	while (clock_now_ns() < end) {
		__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
		found += progress_poll();
	}
	assert_true(found > 0);
	assert_int_equal(lazy_polls, 0);
}

int main(void)
{
	return run_cases(.group_setup = make);
}
