/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the device thread takes what arrives for a program that makes no call: it is woken, but not for each of many arrivals one
 * behind the other, and again when that is over. A program that sleeps until its CQ has an event wants it woken each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "hca/hca.h"
#include "some_link.h"

#define PATIENCE_NS UINT64_C(10000000000)

static bool is_armed(void)
{
	return __atomic_load_n(&arrivals.armed, __ATOMIC_SEQ_CST);
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
	return !hca_device(0) || progress_add(&arrivals_link);
}

static void one_wakes_the_thread(void **state)
{
	(void)state;
	becomes_armed();
	assert_true(arrive());
	becomes_armed();
	assert_true(arrive());
}

/* However busy the machine is, now and then so many follow each other without a pause. */
static void many_do_not(void **state)
{
	uint64_t deadline = clock_now_ns() + PATIENCE_NS;
	uint32_t unwoken = 0;

	(void)state;
	while (unwoken < 20) {
		unwoken = arrive() ? 0 : unwoken + 1;
		assert_true(clock_now_ns() < deadline);
	}
	becomes_armed();
	assert_true(arrive());
}

static void a_sleeper_is_woken_each_time(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		progress_before_sleep();
		becomes_armed(); /* at once, but where the thread was in the middle of a look */
		assert_true(arrive());
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_wakes_the_thread),
		cmocka_unit_test(many_do_not),
		cmocka_unit_test(a_sleeper_is_woken_each_time),
	};

	return cmocka_run_group_tests(tests, make, NULL);
}
