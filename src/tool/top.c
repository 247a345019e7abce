/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca top: shows the packets that the processes of this host send, receive and repeat. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/tool.h"
#include "tool/top.h"

#define MOST_PROCESSES 1024

static double clock_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static const struct process_counters *sample_before(const struct top_samples *samples,
						    const struct process_counters *process)
{
	for (size_t i = 0; i < samples->before_count; i++)
		if (samples->before[i].pid == process->pid && samples->before[i].device == process->device &&
		    samples->before[i].inode == process->inode)
			return &samples->before[i];
	return NULL;
}

double top_rate(const struct top_samples *samples, const struct process_counters *process, enum known_counter counter)
{
	const struct process_counters *before = sample_before(samples, process);

	if (!before || process->values[counter] < before->values[counter] || samples->seconds <= 0)
		return 0;
	return (double)(process->values[counter] - before->values[counter]) / samples->seconds;
}

uint64_t top_qps(const struct process_counters *process)
{
	uint64_t made = process->values[KNOWN_QPS_CREATED], gone = process->values[KNOWN_QPS_DESTROYED];

	return made > gone ? made - gone : 0;
}

uint64_t top_errors(const struct process_counters *process)
{
	static const enum known_counter counters[] = {
		KNOWN_RETRIES_EXHAUSTED, KNOWN_ERROR_NAKS_SENT, KNOWN_ERROR_NAKS_RECEIVED, KNOWN_UDP_BAD_ICRC,
		KNOWN_UDP_MALFORMED,     KNOWN_SHM_MALFORMED,   KNOWN_UDP_SEND_ERRORS,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		sum += process->values[counters[i]];
	return sum;
}

const char *top_links(const struct process_counters *process)
{
	bool shm = process->values[KNOWN_SHM_RUNS_SENT] || process->values[KNOWN_SHM_RUNS_RECEIVED];
	bool udp = process->values[KNOWN_UDP_PACKETS_SENT] || process->values[KNOWN_UDP_PACKETS_RECEIVED];

	return shm && udp ? "shm udp" : shm ? "shm" : udp ? "udp" : "-";
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void process_print_json(const struct top_samples *samples, const struct process_counters *process)
{
	printf("  {\"pid\": %d, \"program\": \"", (int)process->pid);
	for (const char *at = process->name; *at; at++)
		printf(*at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	printf("\", \"qps\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"links\": \"%s\",\n   \"counters\": {",
	       top_qps(process), top_errors(process), top_links(process));
	for (int i = 0; i < KNOWN_COUNT; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", known_counter_names[i], process->values[i]);
	printf("},\n   \"per_second\": {");
	for (int i = 0; i < KNOWN_COUNT; i++)
		printf("%s\"%s\": %.3f", i ? ", " : "", known_counter_names[i], top_rate(samples, process, i));
	printf("}}");
}

static void samples_print_json(const struct top_samples *samples)
{
	printf("[");
	for (size_t i = 0; i < samples->now_count; i++) {
		printf("%s\n", i ? "," : "");
		process_print_json(samples, &samples->now[i]);
	}
	puts("\n]");
}

static void samples_print_screen(struct top_samples *samples, struct top_view *view)
{
	/* Cuts off lines that are too long. */
	fputs("\033[?7l\033[H\033[J", stdout);
	view->rows = top_terminal_lines();
	/* Other lines: title, hidden processes, totals and keys. */
	view->rows = view->rows > 5 ? view->rows - 4 : 1;
	top_table_print(samples, view);
	printf("q quit  s, S sort by the next, previous column (%s)  r reverse\033[?7h", top_column_name(view->sort));
	fflush(stdout);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* @end: seconds of CLOCK_MONOTONIC. */
static void keys_obey(struct top_samples *samples, struct top_view *view, double end)
{
	while (clock_seconds() < end) {
		switch (top_terminal_key(end - clock_seconds())) {
		case 'q':
			putchar('\n');
			exit(EXIT_SUCCESS);
		case 's':
			view->sort = (view->sort + 1) % TOP_COLUMNS;
			break;
		case 'S':
			view->sort = (view->sort + TOP_COLUMNS - 1) % TOP_COLUMNS;
			break;
		case 'r':
			view->reversed = !view->reversed;
			break;
		default:
			continue;
		}
		samples_print_screen(samples, view);
	}
}

static void samples_wait(struct top_samples *samples, struct top_view *view, double interval, bool keys)
{
	struct timespec pause = {(time_t)interval, (long)((interval - (double)(time_t)interval) * 1e9)};

	if (keys) {
		keys_obey(samples, view, clock_seconds() + interval);
		return;
	}
	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
}

static void samples_advance(struct top_samples *samples)
{
	struct process_counters *spare = samples->before;

	samples->before = samples->now;
	samples->before_count = samples->now_count;
	samples->now = spare;
	samples->now_count = counters_read(samples->now, MOST_PROCESSES);
}

static double interval_of(const char *text)
{
	char *end;
	double seconds;

	if (!text)
		return 1;
	seconds = strtod(text, &end);
	/* Also rejects NaN. */
	if (*end || !(seconds >= 0.05 && seconds <= 3600))
		tool_fail(EXIT_WRONG_USE, "--interval: 0.05 to 3600 seconds");
	return seconds;
}

static enum top_column sort_of(const char *name)
{
	enum top_column column = TOP_PID;

	if (name && !top_column_find(name, &column))
		tool_fail(EXIT_WRONG_USE, "--sort: column \"%s\" does not exist (softhca top --help lists them)", name);
	return column;
}

/* Returns false if NO_COLOR is set and not empty, or the terminal is dumb or none. */
static bool colour_wanted(void)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

int command_top(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct top_samples samples = {.now = calloc(MOST_PROCESSES, sizeof(struct process_counters)),
				      .before = calloc(MOST_PROCESSES, sizeof(struct process_counters))};
	struct top_view view = {.rows = SIZE_MAX};
	bool screen, keys;
	double interval, sampled;

	if (own_options_parse(COMMAND_TOP, argc, argv, own))
		tool_fail(EXIT_WRONG_USE, "top: unexpected argument \"%s\"", argv[1]);
	interval = interval_of(own[OPTION_TOP_INTERVAL]);
	view.sort = sort_of(own[OPTION_TOP_SORT]);
	if (!samples.now || !samples.before)
		tool_fail(EXIT_FAILURE, "out of memory");
	screen = !own[OPTION_TOP_ONCE] && !own[OPTION_TOP_JSON] && isatty(STDOUT_FILENO);
	keys = screen && isatty(STDIN_FILENO);
	view.colour = screen && colour_wanted();
	if (keys)
		top_terminal_begin();
	samples.now_count = counters_read(samples.now, MOST_PROCESSES);
	do {
		sampled = clock_seconds();
		samples_wait(&samples, &view, interval, keys);
		samples_advance(&samples);
		samples.seconds = clock_seconds() - sampled;
		if (own[OPTION_TOP_JSON])
			samples_print_json(&samples);
		else if (screen)
			samples_print_screen(&samples, &view);
		else
			top_table_print(&samples, &view);
		if (fflush(stdout))
			tool_fail(EXIT_FAILURE, "cannot write the output");
	} while (!own[OPTION_TOP_ONCE]);
	free(samples.before);
	free(samples.now);
	return EXIT_SUCCESS;
}
