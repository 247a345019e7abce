/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca env: one line for a POSIX shell, eval "$(softhca env)". */
#include <stdio.h>
#include <stdlib.h>

#include "tool/tool.h"

/* In single quotes a shell takes everything as it is, but the quote itself. */
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

int command_env(int argc, char **argv)
{
	struct settings settings;
	char value[4096];

	options_parse_all(COMMAND_ENV, argc, argv, &settings, NULL);
	fputs("export LD_LIBRARY_PATH=", stdout);
	print_quoted(library_directory());
	fputs("\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"", stdout);
	for (int i = 0; i < SETTING_COUNT; i++) {
		if (settings.origin[i] != ORIGIN_OPTION)
			continue;
		setting_format(&settings, i, value, sizeof(value));
		printf(" %s=", setting_info(i)->variable);
		print_quoted(value);
	}
	putchar('\n');
	return EXIT_SUCCESS;
}
