/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca completion: a script for bash that completes commands, options and their values, made of the tables of commands and
 * settings. Where values are not words, files are offered. Names of rules are asked of the command itself.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

static const char *const warnings[] = {
#define RULE(number, NAME, ...) #NAME,
#include "explain/rules_misuse.def"
#undef RULE
};

/* ---- values of options ------------------------------------------------------------------------------------------ */

/* "man, connectx": words and nothing else. */
static bool is_list_of_words(const char *range)
{
	for (; *range; range++)
		if (!islower((unsigned char)*range) && *range != '-' && !(*range == ',' && range[1] == ' ' && *++range))
			return false;
	return true;
}

/* Those in backquotes: "`off` or the path of a file". */
static void print_quoted_words(const char *range)
{
	const char *word = strchr(range, '`');

	while (word) {
		size_t length = strcspn(word + 1, "`");

		if (length > 1 && word[1 + length])
			printf("%.*s ", (int)length, word + 1);
		word = word[1 + length] ? strchr(word + length + 2, '`') : NULL;
	}
}

/* "leaked-objects -leaked-objects": with it alone, and without it. */
static void print_names_of_warnings(void)
{
	for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++) {
		char name[64];

		option_word(warnings[i], name, sizeof(name));
		printf(" %s -%s", name, name);
	}
}

static void print_values_of_setting(enum setting setting)
{
	char range[128];
	unsigned int from, to;

	setting_range(setting, range, sizeof(range));
	if (is_list_of_words(range)) {
		for (const char *at = range; *at; at++)
			if (*at != ',')
				putchar(*at);
	} else if (sscanf(range, "auto or a power of two, %u to %u", &from, &to) == 2) {
		printf("auto");
		for (; from <= to; from *= 2)
			printf(" %u", from);
	} else {
		print_quoted_words(range);
	}
	if (setting == SETTING_LINT)
		print_names_of_warnings();
}

static bool setting_is_file(enum setting setting)
{
	char range[128];

	setting_range(setting, range, sizeof(range));
	return strstr(range, "path of a file");
}

/* "a|b|c" with blanks between them, up to @end; nothing if there is no |. */
static void print_alternatives(const char *words, size_t length)
{
	if (!memchr(words, '|', length))
		return;
	for (size_t i = 0; i < length; i++)
		putchar(words[i] == '|' ? ' ' : words[i]);
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

static void print_commands(void)
{
	printf("\tlocal commands='");
	for (int i = 0; i < COMMAND_COUNT; i++)
		printf("%s ", command_infos[i].name);
	puts("help --help --version'");
}

static void print_options(enum command command)
{
	char name[64];

	for (int i = 0; i < OWN_OPTION_COUNT; i++)
		if (own_option_infos[i].command == command)
			printf("--%s ", own_option_infos[i].name);
	for (int i = 0; command_infos[command].settings && i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		printf("--%s ", name);
	}
	printf("--help");
}

/* Sets `options`, and `words`: what the first argument may be. */
static void print_case_of_commands(void)
{
	puts("\tcase ${COMP_WORDS[1]} in");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command_info *info = &command_infos[i];

		printf("\t%s)\n\t\toptions='", info->name);
		print_options(i);
		printf("'\n\t\twords='");
		print_alternatives(info->arguments,
				   islower((unsigned char)*info->arguments) ? strcspn(info->arguments, " ") : 0);
		puts("'\n\t\t;;");
	}
	puts("\tesac");
}

/* Sets `values` of the option `option`, if it takes one, and `files`. */
static void print_case_of_values(void)
{
	char name[64];

	puts("\tcase ${COMP_WORDS[1]}:$option in");
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		if (!*info->value)
			continue;
		printf("\t%s:--%s)\n\t\ttakes=1 values='", command_infos[info->command].name, info->name);
		print_alternatives(info->value, strlen(info->value));
		puts("'\n\t\t;;");
	}
	for (int i = 0; i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		printf("\t*:--%s)\n\t\ttakes=%s files=%s values='", name, setting_alone(i) ? "$equals" : "1",
		       setting_is_file(i) ? "1" : "");
		print_values_of_setting(i);
		puts("'\n\t\t;;");
	}
	puts("\tesac");
}

/* What bash does with a word: "=" is one of its own (COMP_WORDBREAKS). */
static const char before[] = "# bash completion for softhca; made by `softhca completion`.\n"
			     "_softhca()\n"
			     "{\n"
			     "\tlocal word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
			     "\tlocal options= words= takes= values= files= first= equals=\n";
static const char first_word[] = "\tif ((COMP_CWORD == 1)); then\n"
				 "\t\tCOMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
				 "\t\treturn\n"
				 "\tfi\n"
				 "\tif [[ $word == = ]]; then\n"
				 "\t\tword= equals=1\n"
				 "\telif [[ $option == = ]]; then\n"
				 "\t\toption=${COMP_WORDS[COMP_CWORD - 2]} equals=1\n"
				 "\tfi\n";
/* Arguments begin at the first word that is no option and no value of one. */
static const char loop_begins[] = "\tlocal last=$option at\n"
				  "\tfor ((at = 2; at < COMP_CWORD; at++)); do\n"
				  "\t\toption=${COMP_WORDS[at]}\n"
				  "\t\tif [[ $option == -- ]]; then\n"
				  "\t\t\tfirst=$((at + 1))\n"
				  "\t\t\tbreak\n"
				  "\t\telif [[ $option != -* || $option == - ]]; then\n"
				  "\t\t\tfirst=$at\n"
				  "\t\t\tbreak\n"
				  "\t\tfi\n"
				  "\t\ttakes=\n"
				  "\t\t_softhca_values\n"
				  "\t\tif [[ ${COMP_WORDS[at + 1]} == = ]]; then\n"
				  "\t\t\t((at += 2))\n"
				  "\t\telif [[ $takes ]]; then\n"
				  "\t\t\t((at++))\n"
				  "\t\tfi\n"
				  "\tdone\n"
				  "\toption=$last takes= values= files=\n"
				  "\tif [[ ! $first || ${COMP_WORDS[1]} != run ]]; then\n"
				  "\t\t_softhca_values\n"
				  "\tfi\n";
static const char after[] =
	"\tif [[ $takes ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
	"\t\tif [[ $files ]]; then\n"
	"\t\t\tCOMPREPLY+=($(compgen -f -- \"$word\"))\n"
	"\t\tfi\n"
	"\telif [[ ${COMP_WORDS[1]} == run && $first && $COMP_CWORD -gt $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	"\telif [[ $word == -* && ! ( ${COMP_WORDS[1]} == run && $first ) ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	"\telif [[ ${COMP_WORDS[1]} == run ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -c -- \"$word\") $(compgen -f -- \"$word\"))\n"
	"\telif [[ ${COMP_WORDS[1]} == explain ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" explain 2>/dev/null | awk '{print $2}')\" -- \"${word^^}\"))\n"
	"\telif [[ $words && ! $first ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
	"\telif [[ ${COMP_WORDS[1]} == decode || ${COMP_WORDS[1]} == encode ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
	"\telse\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	"\tfi\n"
	"}\n"
	"\n"
	"complete -o filenames -F _softhca softhca";

int command_completion(int argc, char **argv)
{
	if (own_options_parse(COMMAND_COMPLETION, argc, argv, NULL))
		tool_fail(EXIT_WRONG_USE, "completion: unexpected argument \"%s\"", argv[1]);
	puts("# Sets takes, values and files for the option $option of the command line.");
	puts("_softhca_values()\n{");
	print_case_of_values();
	puts("}\n");
	fputs(before, stdout);
	print_commands();
	fputs(first_word, stdout);
	print_case_of_commands();
	fputs(loop_begins, stdout);
	puts(after);
	return EXIT_SUCCESS;
}
