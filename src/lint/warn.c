/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and counts warnings. See state.h. */
#include <inttypes.h>
#include <stdio.h>

#include "explain/rules.h"
#include "lint/state.h"

uint64_t lint_wanted;

/* Atomic. */
static uint64_t counts[MISUSE_RULES];
/* Atomic; one bit for each rule of the other profile that was reported. */
static uint64_t differences[16];

void lint_warn_reset(void)
{
	for (int i = 0; i < MISUSE_RULES; i++)
		__atomic_store_n(&counts[i], 0, __ATOMIC_RELAXED);
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		__atomic_store_n(&differences[i], 0, __ATOMIC_RELAXED);
}

void lint_warn_summary(char text[LINT_SUMMARY_BYTES])
{
	char line[MISUSE_RULES * LINT_SUMMARY_PART];
	size_t used = 0;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < MISUSE_RULES; i++) {
		uint64_t count = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);

		if (!count)
			continue;
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%" PRIu64 " %s", sum ? ", " : ": ", count,
					 rule_text(MISUSE_FIRST + i)->name);
		sum += count;
	}
	line[used] = '\0';
	snprintf(text, LINT_SUMMARY_BYTES, "lint: %" PRIu64 " warning%s%s", sum, sum == 1 ? "" : "s", line);
}

void lint_profile_differs(struct hca *hca, const char *call, uint32_t rule)
{
	uint64_t bit = UINT64_C(1) << rule % 64;
	uint64_t *word = &differences[rule / 64 % (sizeof(differences) / sizeof(differences[0]))];
	bool told = __atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit;
	uint64_t warned = told ? UINT64_MAX : 0;

	lint_warn(hca, &(const struct explain_subject){.call = call}, &warned, RULE_PROFILE_DIFFERS, FIGURES(rule));
}

void lint_warn(struct hca *hca, const struct explain_subject *subject, uint64_t *warned, enum explain_rule rule,
	       const uint64_t *figures, size_t count)
{
	uint64_t bit = misuse_bit(rule);

	if (!(lint_wanted & bit))
		return;
	__atomic_add_fetch(&counts[rule - MISUSE_FIRST], 1, __ATOMIC_RELAXED);
	if (warned && *warned & bit)
		return;
	if (warned)
		*warned |= bit;
	explain_make(hca, subject, rule, figures, count);
}
