/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of explain/beyond, one for each rule of beyond.def, in the files beyond_*.c. Each case of a link runs in its
 * own process. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_CASES_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_CASES_H

#define BEYOND(rule, reason) void case_##rule(void **state);
#include "beyond.def"
#undef BEYOND

/* Defines a case; the parameter `state` is that of cmocka. */
#define BEYOND_CASE(rule) void case_##rule(__attribute__((unused)) void **state)

#endif
