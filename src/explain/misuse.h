/* SPDX-License-Identifier: BSD-2-Clause */
/* Selects warnings about misuse (src/lint/; rules 900 to 949) by SOFTHCA_LINT. Pure functions; any thread. */
#ifndef SOFTHCA_EXPLAIN_MISUSE_H
#define SOFTHCA_EXPLAIN_MISUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/explain.h"

#define MISUSE_FIRST 900
#define MISUSE_RULES 50

static inline uint64_t misuse_bit(enum explain_rule rule)
{
	return UINT64_C(1) << ((uint32_t)rule - MISUSE_FIRST);
}

/**
 * Parses comma-separated words, from left to right: `on` (all except WRITE_READ_EARLY), `off`, the name of a rule
 * ("queue-unsignaled"; case, _ and - do not matter), which adds it, or -name, which removes it. If the first word is a
 * -name, the list starts from `on`. Returns 0, or -EINVAL and a line without newline in @error.
 */
int misuse_parse(const char *text, uint64_t *wanted, char *error, size_t size);

#endif
