/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selection of warnings about misuse (rules 900 to 949, explain/rules_misuse.def) by SOFTHCA_LINT. Pure functions over the table of rules;
 * any thread. src/lint/ makes the warnings.
 */
#ifndef SOFTHCA_EXPLAIN_MISUSE_H
#define SOFTHCA_EXPLAIN_MISUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/explain.h"

#define MISUSE_FIRST 900
#define MISUSE_RULES 50

/** Returns the bit of @rule, one of the MISUSE_RULES from MISUSE_FIRST on. */
static inline uint64_t misuse_bit(enum explain_rule rule)
{
	return UINT64_C(1) << ((uint32_t)rule - MISUSE_FIRST);
}

/**
 * Parses the value of the setting LINT: comma-separated words, from left to right. `on`: all warnings except
 * WRITE_READ_EARLY; `off`: none; the name of a rule ("queue-unsignaled"; case, _ and - do not matter): adds it; -name:
 * removes it. If the first word has the form -name, the list starts from `on`. @wanted gets the bits. Returns 0, or
 * -EINVAL and one line without newline in @error.
 */
int misuse_parse(const char *text, uint64_t *wanted, char *error, size_t size);

#endif
