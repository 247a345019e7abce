/* SPDX-License-Identifier: BSD-2-Clause */
/* The names for C libraries without strerrorname_np(3) (src/core/error_name.c), against those of glibc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/error_name.h"

static void names_are_those_of_glibc(void **state)
{
	(void)state;
	for (int error = -1; error < 4096; error++) {
		const char *expected = strerrorname_np(error), *name = error_name(error);

		if (!expected)
			assert_null(name);
		else
			assert_string_equal(name, expected);
	}
	assert_null(error_name(INT_MAX));
	assert_null(error_name(INT_MIN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_glibc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
