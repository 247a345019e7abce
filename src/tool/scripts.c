/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs src/tool/python, which needs only Python's standard library. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/timeline_file.h"
#include "tool/tool.h"

#define PYTHON "python3"

static bool is_in_path(const char *program)
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];

	while (path && *path) {
		size_t length = strcspn(path, ":");

		snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)length, path, program);
		if (!access(candidate, X_OK))
			return true;
		path += length + (path[length] == ':');
	}
	return false;
}

void python_require(const char *what)
{
	if (!is_in_path(PYTHON))
		tool_fail(EXIT_FAILURE, "%s needs " PYTHON ", which is not installed", what);
}

_Noreturn void python_run(const char *name, int count, char **arguments)
{
	/* Variables and files of the user must not change imports; writes no files next to the scripts. */
	const char *const words[] = {PYTHON,           "-I", "-S", "-B", "-X", "utf8", script_directory(),
				     "/proc/self/exe", name};
	const size_t fixed = sizeof(words) / sizeof(words[0]);
	char **all = calloc(fixed + (size_t)count + 1, sizeof(*all)), command[PATH_MAX];

	python_require(name);
	if (!all || !realpath("/proc/self/exe", command))
		tool_fail(EXIT_FAILURE, "cannot run " PYTHON ": %m");
	for (size_t i = 0; i < fixed; i++)
		/* cppcheck-suppress nullPointerRedundantCheck */
		all[i] = (char *)words[i];
	/* cppcheck-suppress nullPointerRedundantCheck */
	all[fixed - 2] = command;
	for (int i = 0; i < count; i++)
		all[fixed + (size_t)i] = arguments[i];
	fflush(stdout);
	execvp(PYTHON, all);
	tool_fail(EXIT_FAILURE, "cannot run " PYTHON ": %m");
}

bool python_wait(const char *name, int count, char **arguments, int out)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		dup2(out, STDOUT_FILENO);
		python_run(name, count, arguments);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

int command_timeline(int argc, char **argv)
{
	int count = own_options_parse(COMMAND_TIMELINE, argc, argv, NULL);

	if (!count)
		tool_fail(EXIT_WRONG_USE,
			  "timeline: no file given (of records, FILE.PID" TIMELINE_SUFFIX ", or a trace)");
	python_run("timeline", count, argv + 1);
}

int command_report(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	int count = own_options_parse(COMMAND_REPORT, argc, argv, own);
	char **arguments = calloc((size_t)count + 2, sizeof(*arguments));

	if (!count)
		tool_fail(EXIT_WRONG_USE, "report: no file given (try softhca report --help)");
	if (!arguments)
		tool_fail(EXIT_FAILURE, "out of memory");
	arguments[0] = own[OPTION_REPORT_OUTPUT] ? (char *)own[OPTION_REPORT_OUTPUT] : "";
	arguments[1] = SOFTHCA_VERSION;
	memcpy(arguments + 2, argv + 1, (size_t)count * sizeof(*arguments));
	python_run(own[OPTION_REPORT_JSON] ? "report-json" : "report", count + 2, arguments);
}
