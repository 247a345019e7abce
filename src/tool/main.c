/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca: chooses the command. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"
#include "tool/tool.h"

void tool_fail(int status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("softhca: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static int command(int argc, char **argv)
{
	static int (*const run[COMMAND_COUNT])(int argc, char **argv) = {
		[COMMAND_RUN] = command_run,
		[COMMAND_ENV] = command_env,
		[COMMAND_INFO] = command_info,
		[COMMAND_DOCTOR] = command_doctor,
		[COMMAND_TOP] = command_top,
		[COMMAND_EXPLAIN] = command_explain,
		[COMMAND_DECODE] = command_decode,
		[COMMAND_ENCODE] = command_encode,
		[COMMAND_TIMELINE] = command_timeline,
		[COMMAND_COMPLETION] = command_completion,
		[COMMAND_REPORT] = command_report,
		[COMMAND_HOSTS] = command_hosts,
		[COMMAND_ON] = command_on,
	};

	if (argc < 2)
		tool_fail(EXIT_WRONG_USE, "no command (try softhca --help)");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help_print();
		return EXIT_SUCCESS;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("softhca %s\n", softhca_version());
		return EXIT_SUCCESS;
	}
	for (int i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(argv[1], command_infos[i].name) == 0)
			return run[i](argc - 1, argv + 1);
	tool_fail(EXIT_WRONG_USE, "unknown %s \"%s\" (try softhca --help)", *argv[1] == '-' ? "option" : "command",
		  argv[1]);
}

int main(int argc, char **argv)
{
	int status = command(argc, argv);

	/* A full disk or a closed pipe must not look like success. */
	if (fflush(stdout) || ferror(stdout))
		tool_fail(EXIT_FAILURE, "cannot write the output");
	return status;
}
