/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large variables of a thread (core/thread_memory.h): they do not overlap and are released in order, also when the
 * space is exhausted.
 */
#include "test_case.h"

#include <pthread.h>

#include "core/thread_memory.h"

enum { LARGE = THREAD_MEMORY_BYTES / 3 };

struct large {
	uint8_t bytes[LARGE];
};

struct odd {
	uint8_t bytes[100];
};

static void holds(const struct large *large, int value)
{
	for (size_t i = 0; i < LARGE; i++)
		assert_int_equal(large->bytes[i], value);
}

/* Each level has a variable with contents that deeper levels must not change. */
static void nest(int depth)
{
	THREAD_VARIABLE(struct odd, odd);
	THREAD_VARIABLE(struct large, large);

	assert_int_equal((uintptr_t)odd % 64, 0);
	assert_int_equal((uintptr_t)large % 64, 0);
	memset(odd, 0xff, sizeof(*odd));
	memset(large, depth, sizeof(*large));
	if (depth > 1)
		nest(depth - 1);
	holds(large, depth);
}

TEST(variables_nest)
{
	nest(2);
	assert_int_equal(epoch_this_thread->memory_used, 0);
}

TEST(more_than_there_is)
{
	nest(6);
	assert_int_equal(epoch_this_thread->memory_used, 0);
}

TEST(again)
{
	const void *first = NULL;

	for (int i = 0; i < 100; i++) {
		THREAD_VARIABLE(struct large, large);

		first = first ? first : large;
		assert_ptr_equal(large, first);
	}
}

static void *take_one(void *argument)
{
	THREAD_VARIABLE(struct large, large);

	*(const void **)argument = large;
	return NULL;
}

TEST(threads_have_their_own)
{
	THREAD_VARIABLE(struct large, large);
	const void *other = NULL;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, take_one, &other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_non_null(other);
	assert_ptr_not_equal(other, large);
}
