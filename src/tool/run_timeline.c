/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca run --timeline, --report, --error-exitcode: waits for the program, then makes trace and page, and checks for
 * explanations.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "observe/timeline_file.h"
#include "tool/run_errors.h"
#include "tool/run_report.h"
#include "tool/tool.h"

static volatile pid_t program;

static void signal_forward(int number)
{
	if (program > 0)
		kill(program, number);
}

/* Ignores signals of the terminal, which the program also gets; forwards those sent to this process. */
static void signals_handle(void)
{
	static const int forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	struct sigaction action = {.sa_handler = signal_forward, .sa_flags = SA_RESTART};

	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaction(forwarded[i], &action, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

/* Replaces %p, and makes the path absolute, because processes may change their directory. */
static void timeline_resolve(struct settings *settings)
{
	char directory[PATH_MAX], path[sizeof(settings->timeline) + PATH_MAX], expanded[sizeof(settings->timeline)];

	output_path("timeline", settings->timeline, expanded, sizeof(expanded));
	strcpy(settings->timeline, expanded);

	if (settings->timeline[0] == '/')
		return;
	if (!getcwd(directory, sizeof(directory)))
		tool_fail(EXIT_FAILURE, "--timeline: %m");
	snprintf(path, sizeof(path), "%s/%s", directory, settings->timeline);
	if (strlen(path) >= sizeof(settings->timeline))
		tool_fail(EXIT_FAILURE, "--timeline: %s: %s", settings->timeline, strerror(ENAMETOOLONG));
	strcpy(settings->timeline, path);
}

/* Ends as the program did. */
_Noreturn static void end_as(int status)
{
	if (WIFSIGNALED(status)) {
		const struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Only the outermost `softhca run` makes the trace. */
static bool outer_run_waits(const struct settings *settings)
{
	const char *variable = getenv(setting_info(SETTING_TIMELINE)->variable);

	return settings->origin[SETTING_TIMELINE] == ORIGIN_OPTION && variable &&
	       strcmp(variable, settings->timeline) == 0;
}

/* Has Python write the trace of records next to @path since @started to @out. */
static void trace_collect(const char *path, FILE *out, uint64_t started)
{
	char since[32], *arguments[] = {(char *)path, since};

	snprintf(since, sizeof(since), "%" PRIu64, started);
	if (!python_wait("collect", 2, arguments, fileno(out)))
		fprintf(stderr, "softhca: %s is not complete; what was recorded is in %s.*" TIMELINE_SUFFIX "\n", path,
			path);
	fclose(out);
}

/* Returns the status, as in wait(2). */
static int program_wait(struct run_report *report)
{
	const struct timespec often = {.tv_nsec = 20000000};
	int status = 0;

	if (!report->output) {
		while (waitpid(program, &status, 0) < 0 && errno == EINTR)
			;
		return status;
	}
	while (waitpid(program, &status, WNOHANG) == 0) {
		run_report_tell(report);
		nanosleep(&often, NULL);
	}
	return status;
}

/* Returns the trace's file, or NULL if none is made here. */
static FILE *trace_begin(struct settings *settings)
{
	FILE *out;

	if (strcmp(settings->timeline, "off") == 0 || outer_run_waits(settings))
		return NULL;
	python_require("--timeline");
	timeline_resolve(settings);
	settings->origin[SETTING_TIMELINE] = ORIGIN_OPTION;
	out = fopen(settings->timeline, "we");
	if (!out)
		tool_fail(EXIT_FAILURE, "--timeline: %s: %m", settings->timeline);
	return out;
}

void run_and_collect(struct settings *settings, char *const command[], const char *page, const char *error_status)
{
	struct run_report report = {.output = NULL};
	struct run_errors errors;
	uint64_t began, ended;
	sigset_t all, before;
	int status;
	FILE *out;

	if (page)
		run_report_begin(&report, settings, page);
	out = trace_begin(settings);
	run_errors_begin(&errors, error_status);
	if (!out && !page && !error_status)
		return;
	began = wall_clock_ns();
	/* No signal may be lost in between. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	program = fork();
	if (program < 0)
		tool_fail(EXIT_FAILURE, "fork: %m");
	if (program)
		signals_handle();
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!program)
		return;
	status = program_wait(&report);
	ended = wall_clock_ns();
	program = 0;
	if (out)
		trace_collect(settings->timeline, out, began);
	if (page)
		run_report_end(&report, command, began, ended, status);
	end_as(run_errors_status(&errors, status));
}
