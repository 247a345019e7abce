/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of softhca top. One thread. command_top() owns the samples; the table and the terminal only read
 * them.
 */
#ifndef SOFTHCA_TOOL_TOP_H
#define SOFTHCA_TOOL_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/counters_read.h"

/* The counters of all processes at two times. */
struct top_samples {
	struct process_counters *before, *now;
	size_t before_count, now_count;
	double seconds; /* between the two */
};

/* The columns, in their order. */
enum top_column {
	TOP_PID,
	TOP_PROGRAM,
	TOP_QPS,
	TOP_SENT,
	TOP_RECEIVED,
	TOP_PACKETS,
	TOP_RESENT,
	TOP_RNR,
	TOP_ERRORS,
	TOP_LINKS,
	TOP_COLUMNS
};

/* How the table is shown. */
struct top_view {
	enum top_column sort;
	bool reversed; /* numbers begin with the largest unless reversed, PIDs and names with the smallest */
	bool colour;
	size_t rows; /* most processes shown; the others are counted */
};

/* ---- top.c --------------------------------------------------------------------------------------------------------- */

/** Returns @counter of @process per second; 0 without an earlier sample, or if the counter went back. */
double top_rate(const struct top_samples *samples, const struct process_counters *process, enum known_counter counter);

/** Returns the number of queue pairs of @process that exist. */
uint64_t top_qps(const struct process_counters *process);

/** Returns the number of failures and discarded packets of @process. */
uint64_t top_errors(const struct process_counters *process);

/** Returns the names of the links that @process has used; "-" if it has used none. */
const char *top_links(const struct process_counters *process);

/* ---- top_table.c --------------------------------------------------------------------------------------------------- */

/** Prints the table of the processes in @samples, 80 columns wide, with a line of totals. Sorts @samples->now. */
void top_table_print(struct top_samples *samples, const struct top_view *view);

/** Finds the column called @name, as --sort takes it. Returns false if there is none. */
bool top_column_find(const char *name, enum top_column *column);

/** Returns the name of @column. */
const char *top_column_name(enum top_column column);

/* ---- top_terminal.c ------------------------------------------------------------------------------------------------ */

/** Switches the terminal to reading single keys without echo, until the process exits, is stopped or is ended by a signal. */
void top_terminal_begin(void);

/** Returns the number of lines of the terminal. */
size_t top_terminal_lines(void);

/** Waits @seconds for a key. Returns it, or 0. */
char top_terminal_key(double seconds);

#endif
