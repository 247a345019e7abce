/* SPDX-License-Identifier: BSD-2-Clause */
/* Initial memory of a case: random data, correct fields in the input stream, and patches. */
#ifndef SOFTHCA_TESTS_SIGNATURE_FILL_H
#define SOFTHCA_TESTS_SIGNATURE_FILL_H

#include "ends.h"

/**
 * Fills the memory of both ends; their layouts are set. Returns how many bytes of each region can change, or are
 * relevant.
 */
uint32_t fill_ends(const struct test_case *test_case, struct model_end *source, struct model_end *target);

/** Returns the bytes of the input stream (case.h, patch) that the steps of the case reach. */
uint64_t input_bytes(const struct test_case *test_case, const struct model_end *source);

#endif
