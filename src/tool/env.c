/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca env: variables for a shell, as in eval "$(softhca env)", a GitHub workflow or a Dockerfile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

/* In single quotes only the quote is special. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text);
	}
	putchar('\'');
}

/* fish(1): in single quotes only \\ and ' are special. */
static void print_fish_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('\'');
}

/* Dockerfile reference, ENV: in double quotes \\, " and $ are special. */
static void print_docker_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (strchr("\\\"$", *text))
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

enum format { FORMAT_SH, FORMAT_FISH, FORMAT_GITHUB, FORMAT_DOCKER };

static enum format parse_format(const char *name)
{
	static const char *const names[] = {"sh", "fish", "github", "docker"};
	enum format format = FORMAT_SH;

	while (name && strcmp(names[format], name) != 0)
		format++;
	return format;
}

static void print_variable(enum format format, const char *name, const char *value)
{
	switch (format) {
	case FORMAT_SH:
		printf(" %s=", name);
		print_quoted(value);
		break;
	case FORMAT_FISH:
		printf("set -gx %s ", name);
		print_fish_quoted(value);
		puts(";");
		break;
	case FORMAT_GITHUB:
		printf("%s=%s\n", name, value);
		break;
	case FORMAT_DOCKER:
		printf("ENV %s=", name);
		print_docker_quoted(value);
		putchar('\n');
		break;
	}
}

/* GitHub and Docker do not expand variables in values, so they get the current value. */
static void print_library_path(enum format format)
{
	const char *directory = library_directory(), *path = getenv("LD_LIBRARY_PATH");
	char value[8192];

	switch (format) {
	case FORMAT_SH:
		fputs("export LD_LIBRARY_PATH=", stdout);
		print_quoted(directory);
		fputs("\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"", stdout);
		break;
	case FORMAT_FISH:
		/* fish splits and joins variables named …PATH at colons. */
		fputs("set -gx LD_LIBRARY_PATH ", stdout);
		print_fish_quoted(directory);
		puts(" $LD_LIBRARY_PATH;");
		break;
	case FORMAT_GITHUB:
		snprintf(value, sizeof(value), "%s%s%s", directory, path && *path ? ":" : "", path ? path : "");
		print_variable(format, "LD_LIBRARY_PATH", value);
		break;
	case FORMAT_DOCKER:
		print_variable(format, "LD_LIBRARY_PATH", directory);
		break;
	}
}

int command_env(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct settings settings;
	enum format format;
	char value[4096];

	options_parse_all(COMMAND_ENV, argc, argv, &settings, own);
	format = parse_format(own[OPTION_ENV_FORMAT]);
	print_library_path(format);
	for (int i = 0; i < SETTING_COUNT; i++) {
		if (settings.origin[i] != ORIGIN_OPTION)
			continue;
		setting_format(&settings, i, value, sizeof(value));
		print_variable(format, setting_info(i)->variable, value);
	}
	if (format == FORMAT_SH)
		putchar('\n');
	return EXIT_SUCCESS;
}
