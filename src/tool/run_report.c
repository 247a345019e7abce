/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca run --report: collects outputs in a directory, from which Python then generates a page. Explanations are also
 * written to standard error.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/json.h"
#include "tool/run_report.h"
#include "tool/tool.h"

#define EXPLANATIONS "explanations"

/* Places below the directory of the report. */
static const struct {
	enum setting setting;
	const char *name;
} outputs[RUN_REPORT_OUTPUTS] = {
	{SETTING_EXPLAIN, EXPLANATIONS},     {SETTING_KEYS, "keys"},           {SETTING_COUNTERS, "counters"},
	{SETTING_CAPTURE, "wire.%p.pcapng"}, {SETTING_TIMELINE, "trace.json"},
};

static void report_directory_make(struct run_report *report)
{
	const char *place = getenv("TMPDIR");

	snprintf(report->directory, sizeof(report->directory), "%.4000s/softhca-report-XXXXXX",
		 place && *place == '/' ? place : "/tmp");
	if (!mkdtemp(report->directory))
		tool_fail(EXIT_FAILURE, "--report: %s: %m", report->directory);
}

/* Redirects the output to the directory, unless the user chose a file, which is shown as well. */
static void report_output_place(struct run_report *report, struct settings *settings, enum setting setting,
				const char *name)
{
	char path[PATH_MAX + 32], error[512];
	const char *all = "";

	setting_format(settings, setting, path, sizeof(path));
	if (settings->origin[setting] == ORIGIN_OPTION || settings->origin[setting] == ORIGIN_ENVIRONMENT) {
		const char *chosen = path;

		if (setting == SETTING_EXPLAIN && (!strcmp(path, "all") || !strncmp(path, "all:", 4))) {
			all = "all:";
			chosen = path[3] ? path + 4 : "stderr";
		}
		/* One file keeps the order of output to standard error. */
		if (!strcmp(chosen, "stderr")) {
			name = EXPLANATIONS;
		} else {
			if (strcmp(chosen, "off") != 0)
				report->more[report->more_count++] = strdup(chosen);
			return;
		}
	}
	snprintf(path, sizeof(path), "%s%s/%s", all, report->directory, name);
	if (setting_parse(settings, setting, path, ORIGIN_OPTION, error, sizeof(error)))
		tool_fail(EXIT_FAILURE, "--report: %s", error);
}

void run_report_begin(struct run_report *report, struct settings *settings, const char *output)
{
	char path[PATH_MAX + 32];
	FILE *page;

	python_require("--report");
	*report = (struct run_report){.output = report->path};
	output_path("report", output, report->path, sizeof(report->path));
	/* Fails before the run if the page cannot be written. */
	page = fopen(report->path, "we");
	if (!page)
		tool_fail(EXIT_FAILURE, "--report: %s: %m", report->path);
	/* cppcheck-suppress nullPointerRedundantCheck */
	fclose(page);
	report_directory_make(report);
	for (int i = 0; i < RUN_REPORT_OUTPUTS; i++)
		report_output_place(report, settings, outputs[i].setting, outputs[i].name);
	snprintf(path, sizeof(path), "%s/" EXPLANATIONS, report->directory);
	report->explanations = fopen(path, "a+e");
	if (!report->explanations)
		tool_fail(EXIT_FAILURE, "--report: %s: %m", path);
}

void run_report_tell(struct run_report *report)
{
	char *line = NULL;
	size_t size = 0;

	clearerr(report->explanations);
	while (getline(&line, &size, report->explanations) > 0)
		/* Omits names of removed files, whose contents are on the page. */
		if (!strstr(line, report->directory))
			fputs(line, stderr);
	free(line);
}

static void report_run_write(const struct run_report *report, char *const command[], uint64_t began, uint64_t ended,
			     int status)
{
	char path[PATH_MAX + 32];
	FILE *out;

	snprintf(path, sizeof(path), "%s/run.json", report->directory);
	out = fopen(path, "we");
	if (!out)
		return;
	fputs("{\"softhca run\":{\"command\":[", out);
	for (int i = 0; command[i]; i++) {
		fputs(i ? "," : "", out);
		json_put_string(out, command[i]);
	}
	fprintf(out, "],\"began_ns\":%" PRIu64 ",\"took_ns\":%" PRIu64 ",\"status\":", began, ended - began);
	if (WIFSIGNALED(status))
		fprintf(out, "\"signal %d (%s)\"}}\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		fprintf(out, "\"exit status %d\"}}\n", WEXITSTATUS(status));
	fclose(out);
}

void run_report_end(struct run_report *report, char *const command[], uint64_t began, uint64_t ended, int status)
{
	char *arguments[RUN_REPORT_OUTPUTS + 3] = {(char *)report->output, SOFTHCA_VERSION, report->directory};

	run_report_tell(report);
	report_run_write(report, command, began, ended, status);
	for (int i = 0; i < report->more_count; i++)
		arguments[3 + i] = report->more[i];
	if (!python_wait("run-report", 3 + report->more_count, arguments, STDOUT_FILENO))
		fprintf(stderr, "softhca: %s is not complete; what was recorded is in %s\n", report->output,
			report->directory);
}
