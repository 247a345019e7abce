/* SPDX-License-Identifier: BSD-2-Clause */
/* A refusal is recorded where a check fails, and explained by a caller that can name the request. */
#ifndef SOFTHCA_EXPLAIN_REFUSAL_H
#define SOFTHCA_EXPLAIN_REFUSAL_H

#include <string.h>

#include "core/compiler.h"
#include "explain/explain.h"

struct refusal {
	enum explain_rule rule;
	uint64_t args[EXPLAIN_ARGS];
};

/* Fills *@why, and evaluates to -@errno_value. */
#define REFUSAL(why, errno_value, rule_number, ...)                                                                    \
	(*(why) = (struct refusal){.rule = (rule_number), .args = {__VA_ARGS__}}, -(errno_value))

/** As REFUSAL(), for FIGURES() of a caller. Returns -@error. */
static inline SPECIALISED int refusal_note(struct refusal *why, int error, enum explain_rule rule,
					   const uint64_t *figures, size_t count)
{
	*why = (struct refusal){.rule = rule};
	memcpy(why->args, figures, count * sizeof(*figures));
	return -error;
}

/** Explains @why unless it is RULE_NONE. Any thread. */
static inline void refusal_explain(struct hca *hca, const char *call, int error, const struct refusal *why)
{
	const struct explain_subject subject = {.call = call, .error = error};

	if (why->rule != RULE_NONE)
		explain_make(hca, &subject, why->rule, why->args, EXPLAIN_ARGS);
}

#endif
