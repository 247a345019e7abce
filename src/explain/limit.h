/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate of explanations that others can cause at any rate: packets from elsewhere that are dropped, strangers that ask for
 * connections. So many of each rule are made in a second; the rest is only counted (explanations_left_out), since each would
 * cost a line of the sink, and the place of an older record.
 *
 * A struct explain_told belongs to its struct hca. No lock; any thread.
 */
#ifndef SOFTHCA_EXPLAIN_LIMIT_H
#define SOFTHCA_EXPLAIN_LIMIT_H

#include "explain/explain.h"

/* Rules of the device have numbers below that. */
#define EXPLAIN_LIMITED_RULES 256

/* By rule, each atomic: the second in the upper half, how many there were in it in the lower. */
struct explain_told {
	uint64_t of_rule[EXPLAIN_LIMITED_RULES];
};

/** True if fewer than @most explanations of @hca by @rule (< EXPLAIN_LIMITED_RULES) were made in this second: counts one. */
bool explain_may(struct hca *hca, enum explain_rule rule, uint32_t most);

/** EXPLAIN() of at most @most a second. Yields the serial number, 0: it was left out. */
#define EXPLAIN_LIMITED(hca, subject, most, rule, ...)                                                                 \
	(explain_may(hca, rule, most) ? EXPLAIN(hca, subject, rule, __VA_ARGS__) : 0)

#endif
