/* SPDX-License-Identifier: BSD-2-Clause */
/* core/lock_order, compiled with its check: which lock orders abort the process. Wrong orders are tried in a child. */
#include "test_case.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/lock.h"

static struct queue_lock first[LOCK_LEVELS], second[LOCK_LEVELS];

static int make(void **state)
{
	(void)state;
	for (int level = 0; level < LOCK_LEVELS; level++) {
		queue_lock_init(&first[level], level, false);
		queue_lock_init(&second[level], level, false);
	}
	return 0;
}

/* Returns true if a child that runs @sequence with the two levels ends by abort(3). */
static bool aborts(void (*sequence)(int, int), int one, int other)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		const struct rlimit no_core = {0, 0};

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		if (close(STDERR_FILENO))
			_exit(1);
		sequence(one, other);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGABRT);
		return true;
	}
	assert_int_equal(status, 0);
	return false;
}

static void nest(int outer, int inner)
{
	queue_lock(&first[outer]);
	queue_lock(&second[inner]);
}

static void nest_after_letting_go(int outer, int inner)
{
	queue_lock(&first[outer]);
	queue_unlock(&first[outer]);
	queue_lock(&second[inner]);
}

static void nest_by_trying(int outer, int inner)
{
	queue_lock(&first[outer]);
	if (!queue_try_lock(&second[inner]))
		_exit(1);
}

static void nest_below_a_tried_one(int outer, int inner)
{
	if (!queue_try_lock(&first[outer]))
		_exit(1);
	queue_lock(&second[inner]);
}

static void nest_in_what_the_program_holds(int outer, int inner)
{
	queue_lock(&first[outer]);
	lock_order_left(&first[outer]);
	queue_lock(&second[inner]);
	queue_unlock(&second[inner]);
	queue_unlock(&first[outer]);
}

/* Releases the middle one of three locks first: the others are still recorded. */
static void leave_out_of_order(int outer, int inner)
{
	queue_lock(&first[0]);
	queue_lock(&first[outer]);
	queue_lock(&first[LOCK_LEVELS - 1]);
	queue_unlock(&first[outer]);
	queue_unlock(&first[0]);
	queue_lock(&second[inner]);
}

TEST(test_waiting_needs_a_later_level)
{
	for (int outer = 0; outer < LOCK_LEVELS; outer++)
		for (int inner = 0; inner < LOCK_LEVELS; inner++)
			assert_int_equal(aborts(nest, outer, inner), inner <= outer);
}

TEST(test_released_locks_do_not_count)
{
	assert_false(aborts(nest_after_letting_go, LOCK_LEVEL_CQ, LOCK_LEVEL_QP));
	assert_false(aborts(nest_in_what_the_program_holds, LOCK_LEVEL_USER_CQ, LOCK_LEVEL_SEND_QUEUE));
	assert_true(aborts(leave_out_of_order, LOCK_LEVEL_QP, LOCK_LEVEL_QP));
}

TEST(test_trylock_does_not_wait)
{
	assert_false(aborts(nest_by_trying, LOCK_LEVEL_QP, LOCK_LEVEL_QP));
	assert_true(aborts(nest_below_a_tried_one, LOCK_LEVEL_CQ, LOCK_LEVEL_QP));
}

int main(void)
{
	return run_cases(.group_setup = make);
}
