/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which programs the device thread takes for ones that look after their queues: arrivals need not wake the thread then. Something
 * arrives, on a link of the test's own, when the test says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "core/timer.h"
#include "device/progress.h"
#include "hca/hca.h"

#define PATIENCE_NS UINT64_C(10000000000)
/* Long enough that the thread looks several times, and that a busy machine lets it. */
#define WHILE_NS UINT64_C(200000000)

static struct {
	bool waits;     /* atomic: something has arrived, and was not taken */
	bool armed;     /* atomic: it has to wake the thread */
	uint32_t taken; /* atomic */
} arrivals = {.armed = true};

static bool take(struct poller *poller, struct run *run)
{
	(void)poller;
	(void)run;
	if (!__atomic_exchange_n(&arrivals.waits, false, __ATOMIC_ACQ_REL))
		return false;
	__atomic_add_fetch(&arrivals.taken, 1, __ATOMIC_RELEASE);
	return true;
}

static bool nothing_waits(struct poller *poller)
{
	(void)poller;
	return !__atomic_load_n(&arrivals.waits, __ATOMIC_ACQUIRE);
}

static void arm(struct poller *poller, bool armed)
{
	(void)poller;
	__atomic_store_n(&arrivals.armed, armed, __ATOMIC_SEQ_CST);
}

static struct poller arrivals_link = {.repeats = true, .poll = take, .idle = nothing_waits, .arm = arm};

static bool is_armed(void)
{
	return __atomic_load_n(&arrivals.armed, __ATOMIC_SEQ_CST);
}

/* Something arrives; the program does @works, and looks for nothing. */
static void arrive(uint32_t works)
{
	uint64_t deadline = clock_now_ns() + PATIENCE_NS;
	uint32_t before = __atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE);

	if (works)
		progress_worked(works);
	__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
	if (is_armed())
		progress_wake();
	while (__atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE) == before)
		assert_true(clock_now_ns() < deadline);
}

static void becomes_armed(void)
{
	uint64_t deadline = clock_now_ns() + PATIENCE_NS;

	while (!is_armed())
		assert_true(clock_now_ns() < deadline);
}

static int make(void **state)
{
	(void)state;
	/* The thread counts what others have done. */
	epoch_enter();
	epoch_leave();
	return !hca_device(0) || progress_add(&arrivals_link);
}

/* A program that makes no call is woken for, each time. */
static void one_that_makes_no_call(void **state)
{
	uint64_t end = clock_now_ns() + WHILE_NS;

	(void)state;
	becomes_armed();
	while (clock_now_ns() < end) {
		arrive(0);
		assert_true(is_armed());
	}
}

/* One that takes completions now and then, although its polls never find nothing, is not, until it stops. */
static void one_that_takes_what_it_finds(void **state)
{
	uint64_t deadline = clock_now_ns() + PATIENCE_NS;

	(void)state;
	becomes_armed();
	while (is_armed()) {
		assert_true(clock_now_ns() < deadline);
		arrive(2);
	}
	becomes_armed();
	arrive(0);
	assert_true(is_armed());
}

/* One that sleeps until its CQ has an event does both: it is woken for each time. */
static void one_that_sleeps(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		arrive(2);
		progress_before_sleep();
		becomes_armed();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_makes_no_call),
		cmocka_unit_test(one_that_takes_what_it_finds),
		cmocka_unit_test(one_that_sleeps),
	};

	return cmocka_run_group_tests(tests, make, NULL);
}
