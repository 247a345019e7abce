/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that each run repeats: xorshift64, with a state for each source file. */
#ifndef SOFTHCA_TESTS_SUPPORT_TEST_RANDOM_H
#define SOFTHCA_TESTS_SUPPORT_TEST_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 1;

static inline uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

#endif
