/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the command: one per setting, from the table of settings. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca.h"
#include "tool/tool.h"

/* Option of a setting: DEVICE_NAME -> device-name. */
static void option_name(enum setting setting, char *out, size_t size)
{
	const char *name = setting_info(setting)->name;
	size_t i;

	for (i = 0; name[i] && i + 1 < size; i++)
		out[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
	out[i] = '\0';
}

/* The setting whose option is @text up to @length, or SETTING_COUNT. */
static enum setting find_option(const char *text, size_t length)
{
	char name[64];

	for (int i = 0; i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		if (strlen(name) == length && memcmp(name, text, length) == 0)
			return i;
	}
	return SETTING_COUNT;
}

static bool is_variable(const char *name, size_t length)
{
	const char *known = SETTINGS_FROM_OPTIONS;

	for (int i = 0;; i++) {
		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return true;
		if (i == SETTING_COUNT)
			return false;
		known = setting_info(i)->variable;
	}
}

/* A misspelt variable would otherwise change nothing, in silence. */
static void warn_of_unknown_variables(void)
{
	for (char **entry = environ; *entry; entry++) {
		size_t length = strcspn(*entry, "=");

		if (strncmp(*entry, "SOFTHCA_", 8) == 0 && !is_variable(*entry, length))
			fprintf(stderr, "softhca: %.*s is no setting and has no effect\n", (int)length, *entry);
	}
}

/* What a program would only say when it is too late: @origin is where the text comes from. */
static void check_faults(const struct settings *settings, const char *origin)
{
	char error[512];

	if (softhca_check_faults(settings->faults, error, sizeof(error)))
		tool_fail(EXIT_WRONG_USE, "%s: %s", origin, error);
}

static void read_environment(struct settings *settings)
{
	char error[512];

	warn_of_unknown_variables();
	settings_default(settings);
	for (int i = 0; i < SETTING_COUNT; i++)
		if (setting_from_environment(settings, i, error, sizeof(error)))
			tool_fail(EXIT_WRONG_USE, "%s", error);
	check_faults(settings, setting_info(SETTING_FAULTS)->variable);
}

/* Takes one option from @argv[index]; returns the index behind it. */
static int take_option(int argc, char **argv, int index, struct settings *settings)
{
	const char *option = argv[index] + 2, *value = strchr(option, '=');
	size_t length = value ? (size_t)(value - option) : strlen(option);
	enum setting setting = find_option(option, length);
	char error[512], name[64];

	if (setting == SETTING_COUNT)
		tool_fail(EXIT_WRONG_USE, "unknown option \"--%.*s\" (try softhca --help)", (int)length, option);
	option_name(setting, name, sizeof(name));
	if (value)
		value++;
	else if (++index < argc)
		value = argv[index];
	else
		tool_fail(EXIT_WRONG_USE, "--%s: no value given", name);
	if (setting_parse(settings, setting, value, ORIGIN_OPTION, error, sizeof(error)))
		tool_fail(EXIT_WRONG_USE, "--%s%s", name, strchr(error, ':')); /* not SOFTHCA_NAME: */
	if (setting == SETTING_FAULTS)
		check_faults(settings, "--faults");
	return index + 1;
}

int options_parse(int argc, char **argv, struct settings *settings)
{
	return run_options_parse(argc, argv, settings, NULL);
}

int run_options_parse(int argc, char **argv, struct settings *settings, struct run_options *options)
{
	int index = 1;

	read_environment(settings);
	while (index < argc && argv[index][0] == '-' && argv[index][1]) {
		if (strcmp(argv[index], "--") == 0)
			return index + 1;
		if (strcmp(argv[index], "--help") == 0 || strcmp(argv[index], "-h") == 0) {
			help_print();
			exit(EXIT_SUCCESS);
		}
		if (argv[index][1] != '-')
			tool_fail(EXIT_WRONG_USE, "unknown option \"%s\" (try softhca --help)", argv[index]);
		if (options && strcmp(argv[index], "--no-presence") == 0) {
			options->presence = false;
			index++;
			continue;
		}
		index = take_option(argc, argv, index, settings);
	}
	return index;
}

void options_export(const struct settings *settings)
{
	char value[4096], names[1024] = "";

	for (int i = 0; i < SETTING_COUNT; i++) {
		if (settings->origin[i] != ORIGIN_OPTION)
			continue;
		setting_format(settings, i, value, sizeof(value));
		setenv(setting_info(i)->variable, value, 1);
		if (*names)
			strcat(names, ",");
		strcat(names, setting_info(i)->name);
	}
	if (*names)
		setenv(SETTINGS_FROM_OPTIONS, names, 1);
}

void help_print(void)
{
	char option[64], range[128];

	puts("softhca: an RDMA adapter in software; programs keep their libibverbs.so.1 and libmlx5.so.1\n"
	     "\n"
	     "  softhca run [options] [--] PROGRAM [argument...]   run a program on the device\n"
	     "  softhca env [options]                              print a line that switches a shell over\n"
	     "  softhca info [options]                             show device, port, GIDs, limits, settings\n"
	     "  softhca --help | --version\n"
	     "\n"
	     "Options, each also an environment variable (SOFTHCA_ and the name):");
	for (int i = 0; i < SETTING_COUNT; i++) {
		const struct setting_info *info = setting_info(i);

		option_name(i, option, sizeof(option));
		setting_range(i, range, sizeof(range));
		printf("\n  --%s VALUE   %s; default %s\n      %s\n", option, range, info->fallback, info->doc);
	}
	puts("\n  --no-presence   of softhca run alone: no /dev/infiniband and /sys/class/infiniband in a mount\n"
	     "                  namespace for the program\n"
	     "\nsofthca run sets --explain stderr unless told otherwise; its exit status is the program's.");
}
