/* SPDX-License-Identifier: BSD-2-Clause */
/* Rate limit for explanations that others cause, see limit.h. */
#include "explain/limit.h"

#include "observe/counters.h"
#include "hca/hca.h"
#include "explain/log.h"

bool explain_may(struct hca *hca, enum explain_rule rule, uint32_t most)
{
	uint64_t second = clock_now_ns() / 1000000000u << 32, *at = explain_log_told(hca->explain_log, rule);
	uint64_t before = __atomic_load_n(at, __ATOMIC_RELAXED), after;

	do {
		after = before >> 32 == second >> 32 ? before + 1 : second + 1;
		if ((uint32_t)after > most) {
			counter_add(hca, COUNTER_EXPLANATIONS_LEFT_OUT, 1);
			return false;
		}
	} while (!__atomic_compare_exchange_n(at, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

uint64_t explain_limited(struct hca *hca, const struct explain_subject *subject, uint32_t most, enum explain_rule rule,
			 const uint64_t *args, size_t count)
{
	return explain_may(hca, rule, most) ? explain_make_of_others(hca, subject, rule, args, count) : 0;
}
