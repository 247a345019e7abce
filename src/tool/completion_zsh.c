/* SPDX-License-Identifier: BSD-2-Clause */
/* Specifications for _arguments (zshcompsys(1)). */
#include <stdio.h>
#include <string.h>

#include "tool/completion.h"

/* Escapes @text for use within '...', where brackets and colons are special. */
static void zsh_escape(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		else if (strchr("[]:\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void zsh_print_option(const char *name, const char *doc, const struct completion_value *value)
{
	printf(" \\\n\t\t\t'--%s%s[", name, !value ? "" : value->optional ? "=-" : "=");
	zsh_escape(doc);
	putchar(']');
	if (value) {
		printf("%s:value:", value->optional ? ":" : "");
		if (*value->words && (value->files || value->directories))
			printf("{compadd %s; _files%s}", value->words, value->directories ? " -/" : "");
		else if (*value->words)
			printf("(%s)", value->words);
		else if (value->files)
			printf("_files");
	}
	putchar('\'');
}

static void zsh_print_options(enum command command)
{
	struct completion_value value;
	char option[64];

	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		if (info->command != command)
			continue;
		completion_of_option(info, &value);
		zsh_print_option(info->name, info->doc, *info->value ? &value : NULL);
	}
	for (int i = 0; command_infos[command].settings && i < SETTING_COUNT; i++) {
		option_name(i, option, sizeof(option));
		completion_of_setting(i, &value);
		zsh_print_option(option, setting_info(i)->doc, &value);
	}
	zsh_print_option("help", "show the options of this command", NULL);
}

static void zsh_print_arguments(enum command command)
{
	static const char on_host[] = "'1:host:{compadd h{1..${SOFTHCA_HOST_COUNT:-1}}}' "
				      "'(-)2:command: _command_names -e' '*::argument: _normal'";
	static const char *const arguments[] = {
		[COMPLETION_FILES] = "'*:file:_files'",
		[COMPLETION_RULES] =
			"'*:rule:{compadd ${(f)\"$(softhca explain 2>/dev/null | awk \"{print \\$2}\")\"}}'",
		[COMPLETION_HOST] = on_host,
	};
	const char *text = arguments[completion_arguments(command)];
	char words[COMPLETION_BYTES];

	completion_words(command, words);
	if (*words)
		printf(" \\\n\t\t\t'1:what:(%s)'", words);
	if (command == COMMAND_HOSTS)
		text = "'1:number of hosts:' '(-)2:command: _command_names -e' '*::argument: _normal'";
	else if (completion_arguments(command) == COMPLETION_PROGRAM)
		text = "'(-)1:command: _command_names -e' '*::argument: _normal'";
	if (text)
		printf(" \\\n\t\t\t%s", text);
}

void completion_print_zsh(void)
{
	puts("#compdef softhca\n# zsh completion for softhca; made by `softhca completion zsh`.\n"
	     "_softhca()\n{\n\tlocal -a commands=(");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		printf("\t\t'%s:", command_infos[i].name);
		zsh_escape(command_infos[i].doc);
		puts("'");
	}
	puts("\t\t'help:show the help of a command'\n\t)\n"
	     "\tif ((CURRENT == 2)); then\n"
	     "\t\t_describe command commands\n"
	     "\t\tcompadd -- --help --version\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tlocal command=$words[2]\n"
	     "\tshift words\n"
	     "\t((CURRENT--))\n"
	     "\tcase $command in");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		printf("\t%s)\n\t\t_arguments -S :", command_infos[i].name);
		zsh_print_options(i);
		zsh_print_arguments(i);
		puts("\n\t\t;;");
	}
	puts("\thelp) ((CURRENT == 2)) && _describe command commands ;;\n\tesac\n}\n\n"
	     "# Run by compinit as the body of a function, or sourced.\n"
	     "if [[ $funcstack[1] == _softhca ]]; then\n\t_softhca \"$@\"\nelse\n\tcompdef _softhca softhca\nfi");
}
