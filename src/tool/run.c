/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca run: replaces this process by a program that loads softhca's libraries before the system's. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tool/tool.h"

int command_run(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct settings settings;
	int program = options_parse(COMMAND_RUN, argc, argv, &settings, own);
	char error[64];

	if (program >= argc)
		tool_fail(EXIT_WRONG_USE, "run: no program given (try softhca --help)");
	if (settings.origin[SETTING_EXPLAIN] == ORIGIN_DEFAULT)
		setting_parse(&settings, SETTING_EXPLAIN, "stderr", ORIGIN_OPTION, error, sizeof(error));
	/* The setting needs the files, so it stays unchanged with --no-presence. */
	if (settings.origin[SETTING_PCI] == ORIGIN_DEFAULT && !own[OPTION_RUN_NO_PRESENCE])
		setting_parse(&settings, SETTING_PCI, "on", ORIGIN_OPTION, error, sizeof(error));
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
