/* SPDX-License-Identifier: BSD-2-Clause */
/* A line for each command, option and argument. */
#include <stdio.h>
#include <string.h>

#include "tool/completion.h"

static void fish_quote(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('\'');
}

static void fish_print_option(const char *command, const char *name, const char *doc,
			      const struct completion_value *value)
{
	printf("complete -c softhca -n '__fish_seen_subcommand_from %s' -l %s", command, name);
	if (value && !value->optional)
		printf(value->files ? " -r" : " -x");
	if (value && value->files)
		printf(" -F");
	if (value && (value->directories || *value->words))
		printf(" -a '%s%s'", value->directories ? "(__fish_complete_directories) " : "", value->words);
	printf(" -d ");
	fish_quote(doc);
	putchar('\n');
}

static void fish_print_options(enum command command)
{
	const char *name = command_infos[command].name;
	struct completion_value value;
	char option[64];

	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		if (info->command != command)
			continue;
		completion_of_option(info, &value);
		fish_print_option(name, info->name, info->doc, *info->value ? &value : NULL);
	}
	for (int i = 0; command_infos[command].settings && i < SETTING_COUNT; i++) {
		option_name(i, option, sizeof(option));
		completion_of_setting(i, &value);
		fish_print_option(name, option, setting_info(i)->doc, &value);
	}
	fish_print_option(name, "help", "show the options of this command", NULL);
}

static void fish_print_arguments(enum command command)
{
	static const char *const arguments[] = {
		[COMPLETION_FILES] = "-F",
		[COMPLETION_RULES] = "-a '(softhca explain 2>/dev/null | string match -r \"[A-Z_0-9]{4,}\")'",
		[COMPLETION_PROGRAM] = "-a '(__fish_complete_subcommand --fcs-skip=2)'",
		[COMPLETION_HOST] = "-a '(seq -f h%.0f \"$SOFTHCA_HOST_COUNT\" 2>/dev/null)'",
	};
	const char *text = arguments[completion_arguments(command)], *name = command_infos[command].name;
	char words[COMPLETION_BYTES];

	completion_words(command, words);
	if (*words)
		printf("complete -c softhca -n '__fish_seen_subcommand_from %s; and test (count (commandline -opc)) = 2' -a "
		       "'%s'\n",
		       name, words);
	if (text)
		printf("complete -c softhca -n '__fish_seen_subcommand_from %s' %s\n", name, text);
}

void completion_print_fish(void)
{
	puts("# fish completion for softhca; made by `softhca completion fish`.\n"
	     "complete -c softhca -f\n"
	     "complete -c softhca -n __fish_use_subcommand -l help -d 'all commands, options and settings'\n"
	     "complete -c softhca -n __fish_use_subcommand -l version -d 'show the version'");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		printf("complete -c softhca -n __fish_use_subcommand -a %s -d ", command_infos[i].name);
		fish_quote(command_infos[i].doc);
		putchar('\n');
	}
	puts("complete -c softhca -n __fish_use_subcommand -a help -d 'show the help of a command'");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		fish_print_options(i);
		fish_print_arguments(i);
	}
}
