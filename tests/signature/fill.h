/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the memory of a case before it begins: random data, right fields in the input stream, and patches. */
#ifndef SOFTHCA_TESTS_SIGNATURE_FILL_H
#define SOFTHCA_TESTS_SIGNATURE_FILL_H

#include "ends.h"

/** Fills the memory of both ends, whose layouts are set. Returns how many bytes of each region can change, or matter. */
uint32_t fill_ends(const struct test_case *test_case, struct model_end *source, struct model_end *target);

/** Bytes of the input stream (case.h, patch), as far as the steps of the case reach. */
uint64_t input_bytes(const struct test_case *test_case, const struct model_end *source);

#endif
