/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gate of explanations that others can cause at any rate: packets from elsewhere that are dropped, strangers that ask for
 * connections. So many of each rule are made in a second; the rest is only counted (explanations_left_out), since each would
 * cost a line of the sink. Those that are made are kept apart from all others (explain_make_of_others()), so that nobody else can
 * push out what a program has to know about its own failures.
 *
 * No lock; any thread.
 */
#ifndef SOFTHCA_EXPLAIN_LIMIT_H
#define SOFTHCA_EXPLAIN_LIMIT_H

#include "explain/explain.h"

/* Rules of the device, of the communication manager, and of requests for connections have numbers below that. */
#define EXPLAIN_LIMITED_RULES 900

/** True if fewer than @most explanations of @hca by @rule (< EXPLAIN_LIMITED_RULES) were made in this second: counts one. */
bool explain_may(struct hca *hca, enum explain_rule rule, uint32_t most);

/** explain_make_of_others(), if explain_may(). Returns the serial number, 0: it was left out. */
uint64_t explain_limited(struct hca *hca, const struct explain_subject *subject, uint32_t most, enum explain_rule rule,
			 const uint64_t *args, size_t count);

/** EXPLAIN() of at most @most a second. Yields what explain_limited() returns. */
#define EXPLAIN_LIMITED(hca, subject, most, rule, ...)                                                                 \
	explain_limited(hca, subject, most, rule, (const uint64_t[]){__VA_ARGS__}, EXPLAIN_COUNT_(__VA_ARGS__))

#endif
