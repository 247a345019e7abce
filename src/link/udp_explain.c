/* SPDX-License-Identifier: BSD-2-Clause */
/* How often the udp link explains what a network can make happen at any rate, see udp_parts.h. */
#include "link/udp_parts.h"

/* Rules of the device have numbers below 256. */
#define RULES 256

/* By rule: the second in the upper half, how many there were in the lower. */
static uint64_t told[RULES];

bool udp_may_explain(enum explain_rule rule, uint32_t most)
{
	uint64_t second = clock_now_ns() / 1000000000u << 32, *at = &told[rule % RULES];
	uint64_t before = __atomic_load_n(at, __ATOMIC_RELAXED), after;

	do {
		after = before >> 32 == second >> 32 ? before + 1 : second + 1;
		if ((uint32_t)after > most)
			return false;
	} while (!__atomic_compare_exchange_n(at, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}
