/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of rules, see rules.h. */
#include "explain/rules.h"

#include <string.h>

const struct rule_text *rule_text(enum explain_rule rule)
{
	static const struct rule_text none = {"NONE", "no rule", "", ""};

	switch (rule) {
#define RULE(number, name, text, source, advice)                                                                       \
	case RULE_##name: {                                                                                            \
		static const struct rule_text this = {#name, text, source, advice};                                    \
		return &this;                                                                                          \
	}
#include "explain/rules.def"
#undef RULE
	default:
		return &none;
	}
}

const char *rule_placeholder(const char *text, uint32_t *figure, const char **format, size_t *length)
{
	const char *end;

	if (text[0] != '{' || text[1] < '0' || text[1] >= '0' + EXPLAIN_ARGS || text[2] != ':')
		return NULL;
	end = strchr(text, '}');
	if (!end)
		return NULL;
	*figure = (uint32_t)(text[1] - '0');
	*format = text + 3;
	*length = (size_t)(end - *format);
	return end + 1;
}

/* Returns the arguments of a placeholder. */
static uint32_t figures_of(const char *format)
{
	if (!strncmp(format, "origin}", 7))
		return EXPLAIN_ORIGIN;
	if (!strncmp(format, "users}", 6))
		return EXPLAIN_USERS;
	return strncmp(format, "hint}", 5) ? 1 : EXPLAIN_HINT;
}

uint32_t rule_figures(enum explain_rule rule)
{
	uint32_t figure, count = 0;
	const char *format;
	size_t length;

	for (const char *text = rule_text(rule)->text; *text; text++)
		if (rule_placeholder(text, &figure, &format, &length) && figure + figures_of(format) > count)
			count = figure + figures_of(format);
	return count;
}
