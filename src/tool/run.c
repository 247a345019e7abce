/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca run: replaces this process by a program that loads softhca's libraries before the system's. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tool/tool.h"

void run_defaults(struct settings *settings, bool presence)
{
	const struct {
		enum setting setting;
		const char *text;
		bool applies;
	} defaults[] = {
		{SETTING_EXPLAIN, "stderr", true},
		/* Needs the files. */
		{SETTING_PCI, "on", presence},
		{SETTING_DOORBELLS, "auto", true},
	};
	char error[64];

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (defaults[i].applies && settings->origin[defaults[i].setting] == ORIGIN_DEFAULT)
			setting_parse(settings, defaults[i].setting, defaults[i].text, ORIGIN_OPTION, error,
				      sizeof(error));
}

int command_run(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct settings settings;
	int program = options_parse(COMMAND_RUN, argc, argv, &settings, own);

	if (program >= argc)
		tool_fail(EXIT_WRONG_USE, "run: no program given (try softhca --help)");
	run_defaults(&settings, !own[OPTION_RUN_NO_PRESENCE]);
	outputs_check(&settings);
	fflush(stdout);
	run_and_collect(&settings, argv + program, own[OPTION_RUN_REPORT], own[OPTION_RUN_ERROR_EXITCODE]);
	options_export(&settings);
	library_path_export();
	if (!own[OPTION_RUN_NO_PRESENCE])
		presence_make(&settings);
	fflush(stdout);
	execvp(argv[program], &argv[program]);
	tool_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %m", argv[program]);
}
