/* SPDX-License-Identifier: BSD-2-Clause */
/* The names for C libraries without strerrorname_np(3) (src/core/error_name.c), against those of glibc. */
#include "test_case.h"

#include <limits.h>

#include "core/error_name.h"

TEST(names_are_those_of_glibc)
{
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
