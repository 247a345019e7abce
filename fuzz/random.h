/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers of a mutator, seeded by libFuzzer. */
#ifndef SOFTHCA_FUZZ_RANDOM_H
#define SOFTHCA_FUZZ_RANDOM_H

#include <stdint.h>

extern uint64_t random_state;

static inline void random_begin(unsigned int seed)
{
	random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static inline uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16);
}

static inline uint32_t below(uint32_t limit)
{
	return random32() % limit;
}

#endif
