/* SPDX-License-Identifier: BSD-2-Clause */
/* See timeline_files.h. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/progress.h"
#include "tool/timeline_files.h"
#include "tool/timeline_map.h"
#include "tool/timeline_trace.h"
#include "tool/tool.h"

/* A line of a trace is an event, and short. */
#define LINE_BYTES 4096
#define PROCESS_STEP 10000000u /* above all process numbers that Linux gives */

/* ---- numbers of processes ---------------------------------------------------------------------------------------- */

/* Processes of several hosts, or containers, may have one number. */
struct processes {
	struct map used;
};

/* @process if nobody has it yet, else one that is like it. */
static uint32_t unique_process(struct processes *processes, uint32_t process)
{
	while (map_get(&processes->used, process) != MAP_NONE)
		process = (process + PROCESS_STEP) & INT32_MAX;
	map_set(&processes->used, process, 0);
	return process;
}

static void make_sources_unique(struct timeline *timeline, struct processes *processes)
{
	for (size_t i = 0; i < timeline->source_count; i++)
		timeline->sources[i].head.process =
			unique_process(processes, timeline->sources[i].head.process & INT32_MAX);
}

/* ---- traces that are made already --------------------------------------------------------------------------------- */

/* Reads a number at *@at, which moves behind it. */
static bool take_number(const char **at, int64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoll(*at, &end, 10);
	if (end == *at || errno)
		return false;
	*at = end;
	return true;
}

static bool take_text(const char **at, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

/* The first line of @file: false if it is no trace of ours. */
static bool read_base(FILE *file, int64_t *base_ns)
{
	char line[LINE_BYTES];
	const char *at = line;

	return fgets(line, sizeof(line), file) && take_text(&at, TRACE_BEGIN) && take_number(&at, base_ns) &&
	       take_text(&at, TRACE_BEGUN);
}

/* The parts of the line of an event. */
struct line {
	int64_t us, fraction, process;
	const char *rest; /* behind the process, up to the end of the event */
	int length;
};

static bool take_line(const char *text, struct line *line)
{
	const char *at = text;
	size_t length;

	if (!take_text(&at, TRACE_EVENT) || !take_number(&at, &line->us) || *at++ != '.' ||
	    !take_number(&at, &line->fraction) || !take_text(&at, ",\"pid\":") || !take_number(&at, &line->process))
		return false;
	length = strcspn(at, "\n");
	if (length && at[length - 1] == ',')
		length--;
	line->rest = at;
	line->length = (int)length;
	return length > 1 && at[0] == ',' && at[length - 1] == '}' && line->fraction >= 0 && line->fraction < 1000;
}

static int64_t ns_of(const struct line *line, const char *text)
{
	/* "-0.5" has its sign where the number does not show it. */
	bool negative = text[strlen(TRACE_EVENT)] == '-';
	uint64_t us = negative ? -(uint64_t)line->us : (uint64_t)line->us;
	uint64_t ns = us * 1000 + (uint64_t)line->fraction;

	return (int64_t)(negative ? -ns : ns);
}

/* Lines between two looks whether to tell how far it is. */
enum { LINES_OFTEN = 1024 };

/* All events of @file, whose first line has been read, into @trace. */
static void copy_trace(FILE *file, const char *name, int64_t base_ns, struct trace *trace, struct processes *processes)
{
	struct map known = {0};
	char text[LINE_BYTES];
	struct progress progress;
	uint32_t process;
	struct line line;
	struct stat status;
	off_t size = fstat(fileno(file), &status) ? 0 : status.st_size;

	progress_begin(&progress, "copying the trace", trace->out);
	for (uint64_t lines = 1; fgets(text, sizeof(text), file); lines++) {
		if (lines % LINES_OFTEN == 0 && size > 0)
			progress_tell(&progress, (uint64_t)ftello(file), (uint64_t)size);
		if (strncmp(text, TRACE_END, strlen(TRACE_END)) == 0) {
			progress_end(&progress);
			free(known.entries);
			return;
		}
		if (*text == '\n')
			continue;
		if (!take_line(text, &line))
			break;
		process = map_get(&known, (uint64_t)line.process);
		if (process == MAP_NONE) {
			process = unique_process(processes, (uint32_t)line.process & INT32_MAX);
			map_set(&known, (uint64_t)line.process, process);
		}
		trace_event_begin(trace, (int64_t)((uint64_t)ns_of(&line, text) + (uint64_t)base_ns), process);
		fprintf(trace->out, "%.*s", line.length, line.rest);
	}
	progress_end(&progress);
	tool_fail(EXIT_FAILURE, "%s is damaged, or not complete", name);
}

/* ---- together ------------------------------------------------------------------------------------------------------ */

struct made {
	const char *name;
	FILE *file;
	int64_t base_ns;
};

void timeline_merge(char **files, int count, FILE *out)
{
	struct timeline timeline = {0};
	struct made *made = calloc((size_t)count + 1, sizeof(*made));
	struct processes processes = {0};
	char error[5000];
	struct trace trace;
	uint64_t started;
	int64_t base_ns;
	int made_count = 0;

	if (!made)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (int i = 0; i < count; i++) {
		if (timeline_is_records(files[i], &started)) {
			if (!timeline_add(&timeline, files[i], error, sizeof(error)))
				tool_fail(EXIT_FAILURE, "%s", error);
			continue;
		}
		made[made_count].name = files[i];
		made[made_count].file = fopen(files[i], "re");
		if (!made[made_count].file)
			tool_fail(EXIT_FAILURE, "%s: %m", files[i]);
		if (!read_base(made[made_count].file, &made[made_count].base_ns))
			tool_fail(EXIT_FAILURE, "%s is neither the records of a process nor a trace of softhca",
				  files[i]);
		made_count++;
	}
	timeline_order(&timeline);
	base_ns = timeline.event_count || !made_count ? timeline_base(&timeline) : made[0].base_ns;
	for (int i = 0; i < made_count; i++)
		if (made[i].base_ns < base_ns)
			base_ns = made[i].base_ns;
	trace_begin(&trace, out, base_ns);
	make_sources_unique(&timeline, &processes);
	timeline_write(&timeline, &trace);
	for (int i = 0; i < made_count; i++) {
		copy_trace(made[i].file, made[i].name, made[i].base_ns, &trace, &processes);
		fclose(made[i].file);
	}
	trace_end(&trace);
	timeline_free(&timeline);
	free(processes.used.entries);
	free(made);
}

/* ---- after a run --------------------------------------------------------------------------------------------------- */

/* What glob(7) would take for more than a character. */
static char *quoted(const char *path)
{
	char *pattern = malloc(2 * strlen(path) + 64), *to = pattern;

	if (!pattern)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (const char *at = path; *at; at++) {
		if (strchr("\\*?[]", *at))
			*to++ = '\\';
		*to++ = *at;
	}
	strcpy(to, ".*" TIMELINE_SUFFIX);
	return pattern;
}

static void tell_losses(const struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->source_count; i++) {
		const struct timeline_head *head = &timeline->sources[i].head;

		if (head->overwritten || head->dropped)
			fprintf(stderr,
				"softhca: timeline: the oldest %" PRIu64 " records of process %u (%s) are lost; "
				"--timeline-records keeps more\n",
				head->overwritten + head->dropped, head->process, head->program);
		if (head->qps > head->qp_rows)
			fprintf(stderr,
				"softhca: timeline: process %u (%s) has %u queue pairs, and only of the first %u the "
				"arrows lead to other processes\n",
				head->process, head->program, head->qps, head->qp_rows);
	}
}

/* Of the processes, as the system has them. */
static pid_t *numbers_of(const struct timeline *timeline)
{
	pid_t *numbers = calloc(timeline->source_count + 1, sizeof(*numbers));

	if (!numbers)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (size_t i = 0; i < timeline->source_count; i++)
		numbers[i] = (pid_t)(timeline->sources[i].head.process & INT32_MAX);
	return numbers;
}

/* Those that are in the trace. A process that still runs goes on to record. */
static void remove_records(char **files, const bool *taken, size_t count, const pid_t *numbers)
{
	for (size_t i = 0, source = 0; i < count; i++) {
		if (!taken[i])
			continue;
		if (kill(numbers[source++], 0) && errno == ESRCH)
			unlink(files[i]);
	}
}

bool timeline_collect(const char *path, FILE *out, uint64_t started)
{
	struct timeline timeline = {0};
	struct processes processes = {0};
	char *pattern = quoted(path), error[5000];
	glob_t found = {0};
	uint64_t began;
	struct trace trace;
	bool good = true;
	pid_t *numbers;
	bool *taken;

	glob(pattern, 0, NULL, &found);
	taken = calloc(found.gl_pathc + 1, sizeof(*taken));
	if (!taken)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		/* Of an earlier run that nobody made a trace of. */
		if (!timeline_is_records(found.gl_pathv[i], &began) || began < started)
			continue;
		taken[i] = timeline_add(&timeline, found.gl_pathv[i], error, sizeof(error));
		if (!taken[i])
			fprintf(stderr, "softhca: timeline: %s\n", error);
		good = good && taken[i];
	}
	if (!timeline.source_count && good)
		fputs("softhca: timeline: no process has used the device\n", stderr);
	tell_losses(&timeline);
	timeline_order(&timeline);
	trace_begin(&trace, out, timeline_base(&timeline));
	numbers = numbers_of(&timeline);
	make_sources_unique(&timeline, &processes);
	timeline_write(&timeline, &trace);
	trace_end(&trace);
	good = good && !fflush(out) && !ferror(out);
	if (good)
		remove_records(found.gl_pathv, taken, found.gl_pathc, numbers);
	globfree(&found);
	timeline_free(&timeline);
	free(processes.used.entries);
	free(numbers);
	free(taken);
	free(pattern);
	return good;
}
