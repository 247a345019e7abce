/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca completion: options and arguments from the tables of commands and settings. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/completion.h"

static const char *const warnings[] = {
#define RULE(number, NAME, ...) #NAME,
#include "explain/rules_misuse.def"
#undef RULE
};

/* ---- values of options ------------------------------------------------------------------------------------------ */

/* Returns true for "man, connectx": words and nothing else. */
static bool range_is_words(const char *range)
{
	for (; *range; range++)
		if (!islower((unsigned char)*range) && *range != '-' && !(*range == ',' && range[1] == ' ' && *++range))
			return false;
	return true;
}

/* Writes the words in backquotes, as in "`off` or the path of a file". */
static void quoted_words_put(FILE *out, const char *range)
{
	const char *word = strchr(range, '`');

	while (word) {
		size_t length = strcspn(word + 1, "`");

		if (length > 1 && word[1 + length])
			fprintf(out, "%.*s ", (int)length, word + 1);
		word = word[1 + length] ? strchr(word + length + 2, '`') : NULL;
	}
}

/* Writes "leaked-objects -leaked-objects": names enable and disable warnings. */
static void warnings_put(FILE *out)
{
	for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++) {
		char name[64];

		option_word(warnings[i], name, sizeof(name));
		fprintf(out, " %s -%s", name, name);
	}
}

static void setting_words_put(FILE *out, enum setting setting, const char *range)
{
	unsigned int from, to;

	if (range_is_words(range)) {
		for (const char *at = range; *at; at++)
			if (*at != ',')
				putc(*at, out);
	} else if (sscanf(range, "auto or a power of two, %u to %u", &from, &to) == 2) {
		fputs("auto", out);
		for (; from <= to; from *= 2)
			fprintf(out, " %u", from);
	} else {
		quoted_words_put(out, range);
	}
	if (setting == SETTING_LINT)
		warnings_put(out);
}

void completion_of_setting(enum setting setting, struct completion_value *value)
{
	char range[128];
	FILE *out;

	*value = (struct completion_value){.optional = setting_alone(setting)};
	setting_range(setting, range, sizeof(range));
	value->directories = strstr(range, "path of a directory");
	value->files = strstr(range, "path of a file");
	out = fmemopen(value->words, sizeof(value->words), "w");
	if (out) {
		setting_words_put(out, setting, range);
		fclose(out);
	} else {
		tool_fail(EXIT_FAILURE, "out of memory");
	}
}

/* Copies "a|b|c", which may be in [], as "a b c"; nothing without a |. */
static void alternatives_copy(const char *text, size_t length, char words[COMPLETION_BYTES])
{
	size_t used = 0;

	if (memchr(text, '|', length))
		for (size_t i = 0; i < length && used < COMPLETION_BYTES - 1; i++)
			if (!strchr("[]", text[i]))
				words[used++] = text[i] == '|' ? ' ' : text[i];
	words[used] = '\0';
}

void completion_of_option(const struct own_option_info *info, struct completion_value *value)
{
	*value = (struct completion_value){.files = !strcmp(info->value, "FILE")};
	alternatives_copy(info->value, strlen(info->value), value->words);
}

void completion_words(enum command command, char words[COMPLETION_BYTES])
{
	const char *arguments = command_infos[command].arguments;
	const char *first = *arguments == '[' ? arguments + 1 : arguments;

	alternatives_copy(arguments, islower((unsigned char)*first) ? strcspn(arguments, " ") : 0, words);
}

enum completion_arguments completion_arguments(enum command command)
{
	const char *arguments = command_infos[command].arguments;

	if (strstr(arguments, "PROGRAM"))
		return COMPLETION_PROGRAM;
	if (strstr(arguments, "HOST"))
		return COMPLETION_HOST;
	if (strstr(arguments, "FILE"))
		return COMPLETION_FILES;
	return strstr(arguments, "RULE") ? COMPLETION_RULES : COMPLETION_NONE;
}

int command_completion(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} shells[] = {
		{"bash", completion_print_bash},
		{"zsh", completion_print_zsh},
		{"fish", completion_print_fish},
	};
	int count = own_options_parse(COMMAND_COMPLETION, argc, argv, NULL);
	const char *name = count ? argv[1] : shells[0].name;

	if (count > 1)
		tool_fail(EXIT_WRONG_USE, "completion: unexpected argument \"%s\"", argv[2]);
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		if (strcmp(name, shells[i].name) != 0)
			continue;
		shells[i].print();
		return EXIT_SUCCESS;
	}
	tool_fail(EXIT_WRONG_USE, "completion: no script for \"%s\" (bash, zsh or fish)", name);
}
