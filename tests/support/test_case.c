/* SPDX-License-Identifier: BSD-2-Clause */
/* The registered cases of a program, see test_case.h. */
#include "test_case.h"

static struct registered_case *first;
static size_t count;

/* Keeps the list in order of lines: constructors may run in any order. */
void test_case_register(struct registered_case *test)
{
	struct registered_case **place = &first;

	while (*place && (*place)->line < test->line)
		place = &(*place)->next;
	test->next = *place;
	*place = test;
	count++;
}

int run_cases_in_frame(struct test_frame frame)
{
	struct CMUnitTest *tests = calloc(count, sizeof(*tests));
	const char *only = getenv("SOFTHCA_TEST_CASE");
	size_t i = 0;
	int failed;

	if (!tests)
		return 1;
	if (only)
		cmocka_set_test_filter(only);
	for (const struct registered_case *test = first; test; test = test->next)
		tests[i++] = (struct CMUnitTest){
			.name = test->name,
			.test_func = test->function,
			.setup_func = test->own_frame ? test->setup : frame.setup,
			.teardown_func = test->own_frame ? test->teardown : frame.teardown,
		};
	failed = _cmocka_run_group_tests("tests", tests, count, frame.group_setup, frame.group_teardown);
	free(tests);
	return failed;
}
