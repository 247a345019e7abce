/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca run: a program with our libraries in front of the system's; it takes the place of this process. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tool/tool.h"

int command_run(int argc, char **argv)
{
	struct run_options options = {.presence = true};
	struct settings settings;
	int program = run_options_parse(argc, argv, &settings, &options);
	char error[64];

	if (program >= argc)
		tool_fail(EXIT_WRONG_USE, "run: no program given (try softhca --help)");
	if (settings.origin[SETTING_EXPLAIN] == ORIGIN_DEFAULT)
		setting_parse(&settings, SETTING_EXPLAIN, "stderr", ORIGIN_OPTION, error, sizeof(error));
	options_export(&settings);
	library_path_export();
	if (options.presence)
		presence_make(&settings);
	fflush(stdout);
	execvp(argv[program], &argv[program]);
	tool_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %m", argv[program]);
}
