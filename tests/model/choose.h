/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The random numbers of tests: a generator that is a function of (seed, step), so that omitting a step does not change
 * the draws of the others.
 */
#ifndef SOFTHCA_TESTS_MODEL_CHOOSE_H
#define SOFTHCA_TESTS_MODEL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choose {
	uint64_t state;
};

/** Returns the next number of splitmix64. */
static inline uint64_t choose_bits(struct choose *c)
{
	uint64_t z = c->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline struct choose choose_for(uint64_t seed, uint64_t step)
{
	struct choose c = {seed * 0xd1342543de82ef95 + step};

	choose_bits(&c);
	return c;
}

/** Returns a number in 0 … @count - 1; 0 if @count is 0. */
static inline uint64_t choose_below(struct choose *c, uint64_t count)
{
	return count ? choose_bits(c) % count : 0;
}

static inline bool chance(struct choose *c, unsigned int percent)
{
	return choose_below(c, 100) < percent;
}

#define CHOOSE_OF(c, array) ((array)[choose_below(c, sizeof(array) / sizeof((array)[0]))])

#endif
