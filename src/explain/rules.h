/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts of rules.def by number. Constant data; any thread. */
#ifndef SOFTHCA_EXPLAIN_RULES_H
#define SOFTHCA_EXPLAIN_RULES_H

#include "explain/explain.h"

struct rule_text {
	const char *name;   /* "KEY_RANGE" */
	const char *text;   /* a sentence with placeholders {N:format}, see rules.def */
	const char *source; /* man page, IBTA statement, section of the format sheet */
	const char *advice;
};

/** Returns the texts of @rule; never NULL: unknown numbers have texts, too. */
const struct rule_text *rule_text(enum explain_rule rule);

/** Returns the number of arguments in the sentence of @rule. */
uint32_t rule_figures(enum explain_rule rule);

/**
 * Parses the placeholder that @text begins with: its argument number to @figure, its format to @format, of @length
 * bytes. Returns the text after it, or NULL if @text does not begin with one.
 */
const char *rule_placeholder(const char *text, uint32_t *figure, const char **format, size_t *length);

#endif
