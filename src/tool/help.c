/* SPDX-License-Identifier: BSD-2-Clause */
/* Help of softhca, generated from the tables of commands and settings. */
#include <stdio.h>
#include <string.h>

#include "tool/tool.h"

enum { HELP_COLUMNS = 80 };

/* The first line starts at @column, the others at @indent. */
static void text_wrap(const char *text, int indent, int column)
{
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > HELP_COLUMNS) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			column += printf(" ");
		}
		column += printf("%.*s", length, text);
		text += length;
		text += *text == ' ';
	}
	putchar('\n');
}

static void paragraph_print(int indent, const char *text)
{
	printf("%*s", indent, "");
	text_wrap(text, indent, indent);
}

static void command_summary_print(const struct command_info *info)
{
	printf("  %-11s %s\n", info->name, info->doc);
}

void help_print_short(void)
{
	puts("softhca: an RDMA adapter in software, for programs that use libibverbs\n");
	for (int i = 0; i < COMMAND_COUNT; i++)
		command_summary_print(&command_infos[i]);
	puts("\n  softhca run -- ./program     the usual way\n"
	     "  softhca COMMAND --help       options and an example of a command\n"
	     "  softhca --help               everything, with all settings\n"
	     "  softhca --version");
}

static void setting_help_print(enum setting setting)
{
	const struct setting_info *info = setting_info(setting);
	char option[64], range[128], line[512];

	option_name(setting, option, sizeof(option));
	setting_range(setting, range, sizeof(range));
	snprintf(line, sizeof(line), "--%s%s   %s; default %s", option, setting_alone(setting) ? "[=VALUE]" : " VALUE",
		 range, info->fallback);
	putchar('\n');
	printf("  ");
	text_wrap(line, 6, 2);
	paragraph_print(6, info->doc);
}

static void settings_heading_print(void)
{
	const char *separator = "Options of ";
	char line[256] = "";

	for (int i = 0; i < COMMAND_COUNT; i++) {
		size_t length = strlen(line);

		if (!command_infos[i].settings)
			continue;
		snprintf(line + length, sizeof(line) - length, "%s%s", separator, command_infos[i].name);
		separator = ", ";
	}
	strncat(line, ", each also an environment variable (SOFTHCA_ and the name):", sizeof(line) - strlen(line) - 1);
	paragraph_print(0, line);
}

static void settings_help_print(void)
{
	settings_heading_print();
	for (int i = 0; i < SETTING_COUNT; i++)
		setting_help_print(i);
}

void help_print(void)
{
	puts("softhca: an RDMA adapter in software, for programs that use libibverbs\n");
	for (int i = 0; i < COMMAND_COUNT; i++) {
		printf("  softhca %s %s\n", command_infos[i].name, command_infos[i].arguments);
		paragraph_print(6, command_infos[i].doc);
	}
	puts("  softhca help [COMMAND] | -h | --help | --version\n");
	settings_help_print();
	puts("\nOptions of one command:");
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		printf("\n  %s --%s%s%s\n", command_infos[info->command].name, info->name, *info->value ? " " : "",
		       info->value);
		paragraph_print(6, info->doc);
	}
	putchar('\n');
	paragraph_print(
		0,
		"softhca run sets --explain stderr and --pci on unless told otherwise; its exit status is the program's.");
}

void help_print_command(enum command command)
{
	const struct command_info *info = &command_infos[command];

	printf("softhca %s %s\n", info->name, info->arguments);
	paragraph_print(4, info->doc);
	printf("\n    For example: %s\n", info->example);
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *option = &own_option_infos[i];

		if (option->command != command)
			continue;
		printf("\n  --%s%s%s\n", option->name, *option->value ? " " : "", option->value);
		paragraph_print(6, option->doc);
	}
	if (!info->settings)
		return;
	putchar('\n');
	settings_help_print();
}
