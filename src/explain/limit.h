/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limit per rule and second for explanations that other processes and hosts can cause (DESIGN.md). The rest is
 * only counted (explanations_left_out).
 *
 * No lock; any thread.
 */
#ifndef SOFTHCA_EXPLAIN_LIMIT_H
#define SOFTHCA_EXPLAIN_LIMIT_H

#include "explain/explain.h"

/* Upper bound of the numbers of these rules. */
#define EXPLAIN_LIMITED_RULES 900

/**
 * Counts an explanation and returns true if fewer than @most by @rule (< EXPLAIN_LIMITED_RULES) were made in this
 * second.
 */
bool explain_may(struct hca *hca, enum explain_rule rule, uint32_t most);

/** Returns the serial number, or 0 if the record was left out. */
uint64_t explain_limited(struct hca *hca, const struct explain_subject *subject, uint32_t most, enum explain_rule rule,
			 const uint64_t *args, size_t count);

/** Yields the result of explain_limited(). */
#define EXPLAIN_LIMITED(hca, subject, most, rule, ...) explain_limited(hca, subject, most, rule, FIGURES(__VA_ARGS__))

#endif
