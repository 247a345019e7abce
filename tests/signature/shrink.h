/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a case that shows a difference simpler, as long as it does. */
#ifndef SOFTHCA_TESTS_SIGNATURE_SHRINK_H
#define SOFTHCA_TESTS_SIGNATURE_SHRINK_H

#include "case.h"

/** Changes @test_case; @fails says whether a case still shows a difference. */
void shrink(struct test_case *test_case, bool (*fails)(const struct test_case *test_case));

#endif
