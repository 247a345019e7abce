/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks the rules of beyond.def from inside the library. */
#include "test_case.h"

#include "beyond.h"

int main(void)
{
	const struct CMUnitTest tests[] = {
#define BEYOND(rule, reason) {#rule, case_##rule, open_pair, close_pair, NULL},
#include "beyond.def"
#undef BEYOND
	};

	return cmocka_run_group_tests_name("explain/beyond", tests, NULL, NULL);
}
