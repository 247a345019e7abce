/* SPDX-License-Identifier: BSD-2-Clause */
/* The help of softhca, made of the tables of commands and settings. */
#include <stdio.h>

#include "tool/tool.h"

static void command_summary_print(const struct command_info *info)
{
	printf("  %-11s %s\n", info->name, info->doc);
}

void help_print_short(void)
{
	puts("softhca: an RDMA adapter in software; programs keep their libibverbs.so.1 and libmlx5.so.1\n");
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
	char option[64], range[128];

	option_name(setting, option, sizeof(option));
	setting_range(setting, range, sizeof(range));
	printf("\n  --%s%s   %s; default %s\n      %s\n", option, setting_alone(setting) ? "[=VALUE]" : " VALUE", range,
	       info->fallback, info->doc);
}

static void settings_heading_print(void)
{
	const char *separator = "Options of ";

	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (!command_infos[i].settings)
			continue;
		printf("%s%s", separator, command_infos[i].name);
		separator = ", ";
	}
	puts(", each also an environment variable (SOFTHCA_ and the name):");
}

static void settings_help_print(void)
{
	settings_heading_print();
	for (int i = 0; i < SETTING_COUNT; i++)
		setting_help_print(i);
}

void help_print(void)
{
	puts("softhca: an RDMA adapter in software; programs keep their libibverbs.so.1 and libmlx5.so.1\n");
	for (int i = 0; i < COMMAND_COUNT; i++)
		printf("  softhca %s %s\n      %s\n", command_infos[i].name, command_infos[i].arguments,
		       command_infos[i].doc);
	puts("  softhca help [COMMAND] | -h | --help | --version\n");
	settings_help_print();
	puts("\nOptions of one command:");
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		printf("\n  %s --%s%s%s\n      %s\n", command_infos[info->command].name, info->name,
		       *info->value ? " " : "", info->value, info->doc);
	}
	puts("\nsofthca run sets --explain stderr and --pci on unless told otherwise; its exit status is the program's.");
}

void help_print_command(enum command command)
{
	const struct command_info *info = &command_infos[command];

	printf("softhca %s %s\n    %s\n\n    For example: %s\n", info->name, info->arguments, info->doc, info->example);
	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *option = &own_option_infos[i];

		if (option->command == command)
			printf("\n  --%s%s%s\n      %s\n", option->name, *option->value ? " " : "", option->value,
			       option->doc);
	}
	if (!info->settings)
		return;
	putchar('\n');
	settings_help_print();
}
