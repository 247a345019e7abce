/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of softhca top: a line for each process, and one with the totals. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool/top.h"

enum { CELL_BYTES = 24 };

#define BOLD "\033[1m"
#define REVERSE "\033[7m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* Name for --sort, title, and width; negative: aligned to the left. 80 columns in all. */
static const struct {
	const char *name, *title;
	int width;
} columns[TOP_COLUMNS] = {
	[TOP_PID] = {"pid", "PID", 7},
	[TOP_PROGRAM] = {"program", "PROGRAM", -15},
	[TOP_QPS] = {"qps", "QPS", 5},
	[TOP_SENT] = {"sent", "SENT/s", 7},
	[TOP_RECEIVED] = {"received", "RECV/s", 7},
	[TOP_PACKETS] = {"packets", "PKTS/s", 6},
	[TOP_RESENT] = {"resent", "RESENT", 6},
	[TOP_RNR] = {"rnr", "RNR/s", 5},
	[TOP_ERRORS] = {"errors", "ERRORS", 6},
	[TOP_LINKS] = {"links", "LINKS", -7},
};

/* At full precision. */
struct table_row {
	double value[TOP_COLUMNS];
};

static const struct top_samples *sorted_samples;
static const struct top_view *sorted_view;

bool top_column_find(const char *name, enum top_column *column)
{
	for (int i = 0; i < TOP_COLUMNS; i++) {
		if (strcmp(columns[i].name, name) != 0)
			continue;
		*column = i;
		return true;
	}
	return false;
}

const char *top_column_name(enum top_column column)
{
	return columns[column].name;
}

static struct table_row row_of(const struct top_samples *samples, const struct process_counters *process)
{
#define RATE(NAME) top_rate(samples, process, KNOWN_##NAME)
	return (struct table_row){{
		[TOP_PID] = process->pid,
		[TOP_QPS] = (double)top_qps(process),
		[TOP_SENT] = RATE(SHM_BYTES_SENT) + RATE(UDP_BYTES_SENT),
		[TOP_RECEIVED] = RATE(SHM_BYTES_RECEIVED) + RATE(UDP_BYTES_RECEIVED),
		[TOP_PACKETS] = RATE(SHM_RUNS_SENT) + RATE(SHM_RUNS_RECEIVED) + RATE(UDP_PACKETS_SENT) +
				RATE(UDP_PACKETS_RECEIVED),
		[TOP_RESENT] = RATE(PACKETS_RESENT),
		[TOP_RNR] = RATE(RNR_NAKS_SENT) + RATE(RNR_NAKS_RECEIVED),
		[TOP_ERRORS] = (double)top_errors(process),
	}};
#undef RATE
}

/* qsort(3) has no parameter for the samples and the view. */
static int row_compare(const void *a, const void *b)
{
	const struct process_counters *one = a, *other = b;
	enum top_column column = sorted_view->sort;
	double first = row_of(sorted_samples, one).value[column], second = row_of(sorted_samples, other).value[column];
	int order;

	if (column == TOP_PROGRAM)
		order = strcasecmp(one->name, other->name);
	else if (column == TOP_LINKS)
		order = strcmp(top_links(one), top_links(other));
	else if (column == TOP_PID)
		order = (first > second) - (first < second);
	else
		order = (first < second) - (first > second);
	if (sorted_view->reversed)
		order = -order;
	/* Keeps the places of equal lines. */
	return order ? order : (one->pid > other->pid) - (one->pid < other->pid);
}

/* As 999, 1.2k, 34M. */
static void number_format(double value, int width, char cell[CELL_BYTES])
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	snprintf(cell, CELL_BYTES, "%.0f", value);
	if ((int)strlen(cell) <= width)
		return;
	for (; value >= 999.5 && units[unit + 1]; unit++)
		value /= 1000;
	snprintf(cell, CELL_BYTES, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void cell_print(enum top_column column, const char *text, const char *colour)
{
	/* No blanks after the last column. */
	int width = column == TOP_COLUMNS - 1 ? 0 : columns[column].width;

	printf("%s%s%*s%s", column ? " " : "", colour, width, text, *colour ? PLAIN : "");
}

static const char *cell_colour(const struct top_view *view, enum top_column column, double value)
{
	if (!view->colour || value <= 0)
		return "";
	if (column == TOP_ERRORS)
		return RED;
	return column == TOP_RESENT || column == TOP_RNR ? YELLOW : "";
}

static void title_print(const struct top_view *view)
{
	for (int i = 0; i < TOP_COLUMNS; i++)
		cell_print(i, columns[i].title, !view->colour ? "" : i == (int)view->sort ? BOLD REVERSE : BOLD);
	putchar('\n');
}

static void row_print(const struct top_view *view, const char *pid, const char *name, const struct table_row *row,
		      const char *links)
{
	char cell[CELL_BYTES];

	cell_print(TOP_PID, pid, "");
	cell_print(TOP_PROGRAM, name, "");
	for (int i = TOP_QPS; i < TOP_LINKS; i++) {
		number_format(row->value[i], columns[i].width, cell);
		cell_print(i, cell, cell_colour(view, i, row->value[i]));
	}
	cell_print(TOP_LINKS, links, "");
	putchar('\n');
}

static void total_print(const struct top_samples *samples, const struct top_view *view)
{
	struct table_row total = {{0}};
	char name[CELL_BYTES];

	for (size_t i = 0; i < samples->now_count; i++) {
		struct table_row row = row_of(samples, &samples->now[i]);

		for (int column = 0; column < TOP_COLUMNS; column++)
			total.value[column] += row.value[column];
	}
	snprintf(name, sizeof(name), "%zu process%s", samples->now_count, samples->now_count == 1 ? "" : "es");
	row_print(view, "total", name, &total, "");
}

void top_table_print(struct top_samples *samples, const struct top_view *view)
{
	char pid[CELL_BYTES];

	sorted_samples = samples;
	sorted_view = view;
	qsort(samples->now, samples->now_count, sizeof(*samples->now), row_compare);
	title_print(view);
	for (size_t i = 0; i < samples->now_count && i < view->rows; i++) {
		const struct process_counters *process = &samples->now[i];
		struct table_row row = row_of(samples, process);

		snprintf(pid, sizeof(pid), "%d", (int)process->pid);
		row_print(view, pid, process->name, &row, top_links(process));
	}
	if (samples->now_count > view->rows)
		printf("        … %zu more\n", samples->now_count - view->rows);
	if (samples->now_count)
		total_print(samples, view);
	else
		puts("no process that you may see uses softhca");
}
