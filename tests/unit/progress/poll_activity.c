/* SPDX-License-Identifier: BSD-2-Clause */
/* The device thread's estimate whether the program polls, in simulated time. */
#include "test_case.h"

#include "core/timer.h"
#include "core/tunables.h"
#include "progress/poll_activity.h"

/* One unit of work in this time is enough, two are needed at least (progress_worked()). */
enum { WORK_NS = 50000 };

static uint64_t now_ns;
static struct poll_activity activity;
static struct program_calls calls;

uint64_t __wrap_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void)
{
	return now_ns;
}

static int begin(void **state)
{
	(void)state;
	now_ns = 1000000000;
	calls = (struct program_calls){0};
	activity = (struct poll_activity){.since_ns = now_ns};
	return 0;
}

/* The program does @works while the device thread sleeps for @sleep_ns. Then that thread runs for @run_ns. */
static bool polls_after(uint32_t works, uint64_t sleep_ns, uint64_t run_ns)
{
	uint64_t awake_ns;
	bool polls;

	now_ns += sleep_ns;
	awake_ns = now_ns;
	calls.works += works;
	polls = poll_activity_program_polls(&activity, &calls);
	now_ns += run_ns;
	poll_activity_exclude(&activity, awake_ns, now_ns);
	return polls;
}

TEST(work_often_enough)
{
	assert_true(polls_after(4, 4 * WORK_NS, 0));
	assert_false(polls_after(2, TUNABLE_POLL_LOOK_NS + 1, 0));
	assert_false(polls_after(1, TUNABLE_POLL_LOOK_NS, 0));
}

/* Where both share a processor, the program does nothing while the thread runs, and does not stop polling by that. */
TEST(time_of_the_thread_itself)
{
	for (int i = 0; i < 10; i++)
		assert_true(polls_after(4, 4 * WORK_NS, 1000 * WORK_NS));
	assert_false(polls_after(4, 1000 * WORK_NS, 0));
}

/* Several wake-ups may pass before a decision. */
TEST(time_of_the_thread_between_decisions)
{
	assert_false(polls_after(0, TUNABLE_POLL_LOOK_NS / 4, 1000 * WORK_NS));
	assert_false(polls_after(0, TUNABLE_POLL_LOOK_NS / 4, 1000 * WORK_NS));
	assert_true(polls_after(4, TUNABLE_POLL_LOOK_NS / 4, 0));
}

int main(void)
{
	return run_cases(.setup = begin);
}
