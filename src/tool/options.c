/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of the command: one per setting, from the table of settings, and the commands' own, from commands.def. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/misuse.h"
#include "softhca.h"
#include "tool/hosts.h"
#include "tool/tool.h"

void option_word(const char *name, char *out, size_t size)
{
	size_t i;

	for (i = 0; name[i] && i + 1 < size; i++)
		out[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
	out[i] = '\0';
}

void option_name(enum setting setting, char *out, size_t size)
{
	option_word(setting_info(setting)->name, out, size);
}

/* Returns SETTING_COUNT for an unknown option. */
static enum setting setting_of_option(const char *text, size_t length)
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

static bool is_variable_of_hosts(const char *name, size_t length)
{
	static const char *const names[] = {HOSTS_VARIABLE, HOSTS_NUMBER_VARIABLE, HOSTS_COUNT_VARIABLE};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length && !memcmp(names[i], name, length))
			return true;
	return false;
}

/* Misspelt variables would otherwise be ignored. */
static void warn_of_unknown_variables(void)
{
	for (char **entry = environ; *entry; entry++) {
		size_t length = strcspn(*entry, "=");

		if (strncmp(*entry, "SOFTHCA_", 8) == 0 && !is_variable(*entry, length) &&
		    !is_variable_of_hosts(*entry, length))
			fprintf(stderr, "softhca: %.*s is not a setting and has no effect\n", (int)length, *entry);
	}
}

/* A program would report faulty values too late. @origin: source of the text. */
static void check_faults(const struct settings *settings, const char *origin)
{
	char error[512];

	/* Loads the library (library_calls.c). */
	if (settings->origin[SETTING_FAULTS] != ORIGIN_DEFAULT &&
	    softhca_check_faults(settings->faults, error, sizeof(error)))
		tool_fail(EXIT_WRONG_USE, "%s: %s", origin, error);
}

static void check_lint(const struct settings *settings, const char *origin)
{
	char error[512];
	uint64_t wanted;

	if (misuse_parse(settings->lint, &wanted, error, sizeof(error)))
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
	check_lint(settings, setting_info(SETTING_LINT)->variable);
}

/*
 * Takes the value after "=" or from the next argument, to which *@index then advances. "--" and options are not values:
 * `run --keys -- program` lacks one.
 */
static char *take_value(int argc, char **argv, int *index, const char *name)
{
	char *value = strchr(argv[*index], '=');

	if (value)
		return value + 1;
	if (++*index >= argc || !strncmp(argv[*index], "--", 2))
		tool_fail(EXIT_WRONG_USE, "--%s: no value given%s", name,
			  *index < argc ? " (one that begins with -- is given after =)" : "");
	return argv[*index];
}

static bool take_setting(int argc, char **argv, int *index, struct settings *settings)
{
	const char *option = argv[*index] + 2, *value;
	enum setting setting = setting_of_option(option, strcspn(option, "="));
	char error[512], name[64];

	if (setting == SETTING_COUNT)
		return false;
	option_name(setting, name, sizeof(name));
	value = setting_alone(setting);
	if (!value || strchr(option, '='))
		value = take_value(argc, argv, index, name);
	if (setting_parse(settings, setting, value, ORIGIN_OPTION, error, sizeof(error)))
		tool_fail(EXIT_WRONG_USE, "--%s%s", name, strchr(error, ':')); /* not SOFTHCA_NAME: */
	if (setting == SETTING_FAULTS)
		check_faults(settings, "--faults");
	if (setting == SETTING_LINT)
		check_lint(settings, "--lint");
	return true;
}

/* @words: "a|b|c". */
static bool is_word_of(const char *word, const char *words)
{
	size_t length = strlen(word);

	for (const char *at = words;; at++) {
		size_t next = strcspn(at, "|");

		if (next == length && !memcmp(at, word, length))
			return true;
		at += next;
		if (!*at)
			return false;
	}
}

static bool take_own(enum command command, int argc, char **argv, int *index, const char *own[])
{
	const char *option = argv[*index] + 2;
	size_t length = strcspn(option, "=");

	for (int i = 0; i < OWN_OPTION_COUNT; i++) {
		const struct own_option_info *info = &own_option_infos[i];

		if (info->command != command || strlen(info->name) != length || memcmp(info->name, option, length) != 0)
			continue;
		if (!*info->value && option[length])
			tool_fail(EXIT_WRONG_USE, "--%s takes no value", info->name);
		own[i] = *info->value ? take_value(argc, argv, index, info->name) : "";
		if (strchr(info->value, '|') && !is_word_of(own[i], info->value))
			tool_fail(EXIT_WRONG_USE, "--%s: it is one of %s", info->name, info->value);
		return true;
	}
	return false;
}

static bool is_help(const char *argument)
{
	return !strcmp(argument, "--help") || !strcmp(argument, "-h");
}

/* Returns the name of a similar option, without dashes, or NULL. */
static const char *suggest_option(enum command command, const char *option)
{
	static char best[64];
	struct suggestion suggestion = {.wanted = option};
	char name[64];

	for (int i = 0; i < OWN_OPTION_COUNT; i++)
		if (own_option_infos[i].command == command &&
		    suggestion_is_better(&suggestion, own_option_infos[i].name))
			option_word(own_option_infos[i].name, best, sizeof(best));
	for (int i = 0; command_infos[command].settings && i < SETTING_COUNT; i++) {
		option_name(i, name, sizeof(name));
		if (suggestion_is_better(&suggestion, name))
			memcpy(best, name, sizeof(best));
	}
	return *best ? best : NULL;
}

_Noreturn static void fail_unknown(enum command command, const char *argument)
{
	int length = (int)strcspn(argument, "=");
	char name[64];
	const char *suggestion = NULL;

	if (length > 2 && length < (int)sizeof(name) && argument[1] == '-') {
		snprintf(name, sizeof(name), "%.*s", length - 2, argument + 2);
		suggestion = suggest_option(command, name);
	}
	if (suggestion)
		tool_fail(EXIT_WRONG_USE, "unknown option \"%.*s\" (did you mean --%s?)", length, argument, suggestion);
	tool_fail(EXIT_WRONG_USE, "unknown option \"%.*s\" (try softhca %s --help)", length, argument,
		  command_infos[command].name);
}

int options_parse(enum command command, int argc, char **argv, struct settings *settings, const char *own[])
{
	int index;

	read_environment(settings);
	for (index = 1; index < argc && argv[index][0] == '-' && argv[index][1]; index++) {
		if (!strcmp(argv[index], "--"))
			return index + 1;
		if (is_help(argv[index])) {
			help_print_command(command);
			exit(EXIT_SUCCESS);
		}
		if (argv[index][1] != '-' ||
		    (!take_own(command, argc, argv, &index, own) && !take_setting(argc, argv, &index, settings)))
			fail_unknown(command, argv[index]);
	}
	return index;
}

void options_parse_all(enum command command, int argc, char **argv, struct settings *settings, const char *own[])
{
	int index = options_parse(command, argc, argv, settings, own);

	if (index < argc)
		tool_fail(EXIT_WRONG_USE, "%s: unexpected argument \"%s\"", command_infos[command].name, argv[index]);
}

int own_options_parse(enum command command, int argc, char **argv, const char *own[])
{
	bool options = true;
	int count = 0;

	for (int index = 1; index < argc; index++) {
		if (!options || argv[index][0] != '-' || !argv[index][1]) {
			argv[1 + count++] = argv[index];
		} else if (!strcmp(argv[index], "--")) {
			options = false;
		} else if (is_help(argv[index])) {
			help_print_command(command);
			exit(EXIT_SUCCESS);
		} else if (argv[index][1] != '-' || !take_own(command, argc, argv, &index, own)) {
			fail_unknown(command, argv[index]);
		}
	}
	return count;
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
