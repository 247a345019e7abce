/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca: runs the selected command. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softhca.h"
#include "tool/commit.h"
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

static bool argument_is(const char *argument, const char *word)
{
	return strcmp(argument, word) == 0;
}

/* Suggests a command and exits if there is no @name. */
static enum command command_find(const char *name)
{
	struct suggestion suggestion = {.wanted = name};
	const char *best = NULL;

	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (argument_is(name, command_infos[i].name))
			return i;
		if (suggestion_is_better(&suggestion, command_infos[i].name))
			best = command_infos[i].name;
	}
	if (best)
		tool_fail(EXIT_WRONG_USE, "unknown command \"%s\" (did you mean %s?)", name, best);
	tool_fail(EXIT_WRONG_USE, "unknown %s \"%s\" (try softhca --help)", *name == '-' ? "option" : "command", name);
}

static void help_command(int argc, char **argv)
{
	if (argc > 2)
		tool_fail(EXIT_WRONG_USE, "help: unexpected argument \"%s\"", argv[2]);
	if (argc == 2)
		help_print_command(command_find(argv[1]));
	else
		help_print();
}

static int command_choose(int argc, char **argv)
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
		[COMMAND_DATA] = command_data,
	};

	if (argc < 2)
		tool_fail(EXIT_WRONG_USE, "no command (try softhca --help)");
	if (argument_is(argv[1], "-h"))
		help_print_short();
	else if (argument_is(argv[1], "--help"))
		help_print();
	else if (argument_is(argv[1], "help"))
		help_command(argc - 1, argv + 1);
	else if (argument_is(argv[1], "--version") || argument_is(argv[1], "-V") || argument_is(argv[1], "version"))
		printf(*SOFTHCA_COMMIT ? "softhca %s (%s)\n" : "softhca %s\n", SOFTHCA_VERSION, SOFTHCA_COMMIT);
	else
		return run[command_find(argv[1])](argc - 1, argv + 1);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	int status = command_choose(argc, argv);

	/* Report a full disk or a closed pipe. */
	if (fflush(stdout) || ferror(stdout))
		tool_fail(EXIT_FAILURE, "cannot write the output");
	return status;
}
