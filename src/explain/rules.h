/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of rules.def. Constant data; any thread. */
#ifndef SOFTHCA_EXPLAIN_RULES_H
#define SOFTHCA_EXPLAIN_RULES_H

#include "explain/explain.h"

struct rule_text {
	const char *name;   /* "KEY_RANGE" */
	const char *text;   /* a sentence with placeholders {N:format}, see rules.def */
	const char *source; /* man page, IBTA statement, section of the format sheet */
	const char *advice;
};

/** Never NULL: unknown numbers have texts, too. */
const struct rule_text *rule_text(enum explain_rule rule);

/** Returns the number of arguments of the sentence. */
uint32_t rule_figures(enum explain_rule rule);

/**
 * Parses a placeholder: *@figure is its argument number, *@format has *@length bytes. Returns the text after it, or
 * NULL if @text does not begin with one.
 */
const char *rule_placeholder(const char *text, uint32_t *figure, const char **format, size_t *length);

#endif
