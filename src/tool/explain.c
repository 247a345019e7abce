/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca explain: explains a rule of src/explain/rules.def, given by number (also vendor_err of a completion), name,
 * or a line of an explanation; or lists the rules that lead to a status or an errno value.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/rules.h"
#include "tool/tool.h"

static const enum explain_rule all[] = {
#define RULE(number, ...) number,
#include "explain/rules.def"
#undef RULE
};

#define RULES (sizeof(all) / sizeof(all[0]))
#define LONGEST_NAME 63

#define RULE(number, name, ...) _Static_assert(sizeof(#name) <= LONGEST_NAME + 1, "distance() has room for it");
#include "explain/rules.def"
#undef RULE

/* ---- samples ---------------------------------------------------------------------------------------------------- */

/* Figures of a rule in a test, and statuses and errno values that it caused, separated by spaces. */
static const struct sample {
	enum explain_rule rule;
	const char *outcomes;
	uint64_t figures[EXPLAIN_ARGS];
} samples[] = {
#define SAMPLE(name, outcomes, ...) {RULE_##name, outcomes, {__VA_ARGS__}},
#include "tool/samples.def"
#undef SAMPLE
};

static const struct sample *sample_of(enum explain_rule rule)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		if (samples[i].rule == rule)
			return &samples[i];
	return NULL;
}

/* @text: words separated by spaces. */
static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return true;
	return false;
}

static void print_example(const struct sample *sample)
{
	struct explain_record record = {.rule = sample->rule};
	char line[2048], *end;

	memcpy(record.args, sample->figures, sizeof(record.args));
	explain_render("", &record, line, sizeof(line));
	end = strstr(line, ". [");
	if (end)
		*end = '\0';
	/* Without a device name, the line begins with a colon. */
	printf("  for example  %s\n", line + 2);
}

/* ---- a rule ----------------------------------------------------------------------------------------------------- */

/* Prints {0:x} as <0>, {1:kind} as <1:kind>, like docs/reference/explanations.md. */
static void print_sentence(const char *text)
{
	while (*text) {
		uint32_t figure;
		const char *format, *rest;
		size_t length;

		rest = rule_placeholder(text, &figure, &format, &length);
		if (rest && length > 1)
			printf("<%u:%.*s>", figure, (int)length, format);
		else if (rest)
			printf("<%u>", figure);
		else
			putchar(*text);
		text = rest ? rest : text + 1;
	}
}

static void print_rule(enum explain_rule number)
{
	const struct rule_text *rule = rule_text(number);
	const struct sample *sample = sample_of(number);

	printf("%d %s\n", (int)number, rule->name);
	printf("  says         ");
	print_sentence(rule->text);
	printf("\n  source       %s\n  what to do   %s\n", rule->source, rule->advice);
	if (sample && rule_figures(number))
		print_example(sample);
	if (sample && *sample->outcomes)
		printf("  seen with    %s\n", sample->outcomes);
	if (number <= UINT8_MAX)
		printf("  vendor_err   %d (0x%02x), where a completion failed by it\n", (int)number,
		       (unsigned int)number);
}

/* @outcome may be NULL: all rules. Returns the number of lines. */
static int print_list(const char *outcome)
{
	int count = 0;

	for (size_t i = 0; i < RULES; i++) {
		const struct rule_text *rule = rule_text(all[i]);
		const struct sample *sample = sample_of(all[i]);

		if (outcome && !(sample && has_word(sample->outcomes, outcome)))
			continue;
		printf("%-4d %-26s ", (int)all[i], rule->name);
		print_sentence(rule->text);
		putchar('\n');
		count++;
	}
	return count;
}

/* ---- which rule ------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*number = strtoul(text, &end, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10);
	return !*end;
}

/* Accepts names in the forms of tables, sources and programs. */
static void name_of(const char *text, char name[LONGEST_NAME + 1])
{
	size_t length = 0;

	if (!strncasecmp(text, "RULE_", 5))
		text += 5;
	for (; *text && length < LONGEST_NAME; text++)
		name[length++] = *text == '-' || *text == ' ' ? '_' : (char)toupper((unsigned char)*text);
	name[length] = '\0';
}

/* Finds the number in "… [7 KEY_RANGE; IBTA C10-57] …", or 0. */
static unsigned long number_in_line(const char *text)
{
	for (text = strchr(text, '['); text; text = strchr(text + 1, '[')) {
		unsigned long number;
		int end = 0;

		if (sscanf(text, "[%lu %*[A-Z0-9_]%n", &number, &end) == 1 && end &&
		    (text[end] == ';' || text[end] == ']'))
			return number;
	}
	return 0;
}

static enum explain_rule find(const char *text)
{
	unsigned long number = number_in_line(text);
	char name[LONGEST_NAME + 1];
	bool numbered = number || is_number(text, &number);

	name_of(text, name);
	for (size_t i = 0; i < RULES; i++)
		if (numbered ? all[i] == number : !strcmp(rule_text(all[i])->name, name))
			return all[i];
	return RULE_NONE;
}

/* ---- what it could have been ------------------------------------------------------------------------------------ */

/* Counts letters to insert, remove or change; names have at most LONGEST_NAME. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[LONGEST_NAME + 1], width = (unsigned int)strlen(b);

	for (unsigned int i = 0; i <= width; i++)
		row[i] = i;
	for (unsigned int i = 0; a[i]; i++) {
		unsigned int corner = row[0];

		row[0] = i + 1;
		for (unsigned int k = 0; k < width; k++) {
			unsigned int change = corner + (a[i] != b[k]),
				     least = row[k] < row[k + 1] ? row[k] : row[k + 1];

			corner = row[k + 1];
			row[k + 1] = change < least + 1 ? change : least + 1;
		}
	}
	return row[width];
}

/* A rule name that contains @name is close. */
static unsigned int far(const char *name, const char *rule)
{
	return strstr(rule, name) ? 0 : distance(name, rule);
}

static void suggest(const char *text)
{
	enum { MOST = 6 };
	char name[LONGEST_NAME + 1];
	unsigned int allowed, given = 0;

	name_of(text, name);
	/* Numbers have no suggestions. */
	if (isdigit((unsigned char)*name))
		*name = '\0';
	allowed = (unsigned int)strlen(name) / 3;
	fprintf(stderr, "softhca: no rule \"");
	for (const char *at = text; *at && at - text < LONGEST_NAME; at++)
		fputc(isprint((unsigned char)*at) ? *at : '?', stderr);
	fputc('"', stderr);
	for (unsigned int step = 0; *name && step <= allowed; step++) {
		for (size_t i = 0; i < RULES; i++) {
			const char *rule = rule_text(all[i])->name;

			if (far(name, rule) != step || given == MOST)
				continue;
			fprintf(stderr, "%s%s", given++ ? ", " : "; near it: ", rule);
		}
	}
	fputs(given ? "\n" : " (softhca explain lists all)\n", stderr);
}

/*
 * Prints the rules that lead to @text, such as "IBV_WC_REM_ACCESS_ERR" or "enomem", each after @separator or ",\n".
 * Returns false if there are none.
 */
static bool outcome_print(const char *text, const char *separator, bool json)
{
	char name[LONGEST_NAME + 1];
	bool any = false;

	name_of(strncasecmp(text, "IBV_WC_", 7) ? text : text + 7, name);
	if (*name && !json)
		return print_list(name);
	for (size_t i = 0; *name && i < RULES; i++) {
		const struct sample *sample = sample_of(all[i]);

		if (!sample || !has_word(sample->outcomes, name))
			continue;
		fputs(any ? ",\n" : separator, stdout);
		rule_print_json((int)all[i]);
		any = true;
	}
	return any;
}

/*
 * Prints, after @separator, the rule @text or the rules that lead to it. If there are none, suggests others and returns
 * false.
 */
static bool explain_print(const char *text, const char *separator, bool json)
{
	enum explain_rule number = find(text);

	if (!number && outcome_print(text, separator, json))
		return true;
	if (number) {
		fputs(separator, stdout);
		if (json)
			rule_print_json((int)number);
		else
			print_rule(number);
		return true;
	}
	fflush(stdout);
	suggest(text);
	return false;
}

int command_explain(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	int count = own_options_parse(COMMAND_EXPLAIN, argc, argv, own), status = EXIT_SUCCESS;
	const bool json = own[OPTION_EXPLAIN_JSON];
	const char *separator = json ? "[\n" : "";

	if (!count && json)
		rules_print_json();
	if (!count && !json)
		print_list(NULL);
	if (!count)
		return EXIT_SUCCESS;
	for (int i = 1; i <= count; i++) {
		if (explain_print(argv[i], separator, json))
			separator = json ? ",\n" : "\n";
		else
			status = EXIT_FAILURE;
	}
	if (json)
		puts(*separator == '[' ? "[]" : "\n]");
	return status;
}
