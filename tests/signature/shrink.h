/* SPDX-License-Identifier: BSD-2-Clause */
/* Simplifies a case while it still shows a difference. */
#ifndef SOFTHCA_TESTS_SIGNATURE_SHRINK_H
#define SOFTHCA_TESTS_SIGNATURE_SHRINK_H

#include "case.h"

/** Changes @test_case; @fails returns whether a case still shows a difference. */
void shrink(struct test_case *test_case, bool (*fails)(const struct test_case *test_case));

#endif
