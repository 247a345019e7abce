/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test programs of cmocka. TEST defines and registers a case; the cases of a program run in the order of their lines:
 *
 *	TEST(empty_queue)
 *	{
 *		assert_null(queue_first(&queue));
 *	}
 *
 * A program needs a main() only if something has to happen before the cases or around them; it then returns
 * run_cases(…). Includes cmocka.h and the headers that most tests need. Not thread safe.
 */
#ifndef SOFTHCA_TESTS_TEST_CASE_H
#define SOFTHCA_TESTS_TEST_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/** Functions around cases, as cmocka calls them; NULL: none. */
struct test_frame {
	CMFixtureFunction setup, teardown;             /* of each case, unless it is a TEST_WITH */
	CMFixtureFunction group_setup, group_teardown; /* before the first and after the last case */
};

/** A registered case. */
struct registered_case {
	const char *name;
	CMUnitTestFunction function;
	int line;
	bool own_frame; /* setup and teardown apply, instead of those of the program */
	CMFixtureFunction setup, teardown;
	struct registered_case *next;
};

/** Adds @test, which must stay valid, to the cases of this program. */
void test_case_register(struct registered_case *test);

/** Defines a case; the parameter `state` is that of cmocka. */
#define TEST(test) TEST_DEFINE(test, __LINE__, .own_frame = false)
/** As TEST(), for a case that has to run before those of the other macros. */
#define TEST_FIRST(test) TEST_DEFINE(test, __LINE__ - 1000000, .own_frame = false)
/** As TEST(), with a setup and a teardown of its own. */
#define TEST_WITH(test, first, last)                                                                                   \
	TEST_DEFINE(test, __LINE__, .own_frame = true, .setup = (first), .teardown = (last))

#define TEST_DEFINE(test, place, ...)                                                                                  \
	static void test(void **state);                                                                                \
	static __attribute__((constructor)) void test##_register(void)                                                 \
	{                                                                                                              \
		static struct registered_case entry = {.name = #test, .function = test, .line = (place), __VA_ARGS__}; \
                                                                                                                       \
		test_case_register(&entry);                                                                            \
	}                                                                                                              \
	static void test(__attribute__((unused)) void **state)

/**
 * Runs the registered cases and returns the exit status: run_cases(), run_cases(.setup = begin, .teardown = end).
 * SOFTHCA_TEST_CASE in the environment selects cases by name ("*" matches any text).
 */
#define run_cases(...) run_cases_in_frame((struct test_frame){__VA_ARGS__})
int run_cases_in_frame(struct test_frame frame);

#endif
