/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limit for explanations that other processes and hosts can cause: dropped packets, refused connections. In each
 * second at most a fixed number of records is made for each rule, since each takes a line of the sink; the rest is only
 * counted (explanations_left_out). These records have a separate ring (explain_make_of_others()), so that they cannot
 * displace records of the program's own failures.
 *
 * No lock; any thread.
 */
#ifndef SOFTHCA_EXPLAIN_LIMIT_H
#define SOFTHCA_EXPLAIN_LIMIT_H

#include "explain/explain.h"

/*
 * Upper bound of the rules that can be limited: those of the device, of the communication manager, and of requests for
 * connections.
 */
#define EXPLAIN_LIMITED_RULES 900

/** Counts an explanation and returns true if fewer than @most of @hca by @rule (< EXPLAIN_LIMITED_RULES) were made in this second. */
bool explain_may(struct hca *hca, enum explain_rule rule, uint32_t most);

/** Calls explain_make_of_others() if explain_may(). Returns the serial number, or 0 if the record was left out. */
uint64_t explain_limited(struct hca *hca, const struct explain_subject *subject, uint32_t most, enum explain_rule rule,
			 const uint64_t *args, size_t count);

/** EXPLAIN() at most @most times in a second. Yields the result of explain_limited(). */
#define EXPLAIN_LIMITED(hca, subject, most, rule, ...) explain_limited(hca, subject, most, rule, FIGURES(__VA_ARGS__))

#endif
