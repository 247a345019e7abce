/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of softhca top. One thread. command_top() owns the samples; the others only read them. */
#ifndef SOFTHCA_TOOL_TOP_H
#define SOFTHCA_TOOL_TOP_H

#include <stdbool.h>
#include <stddef.h>

#include "tool/counters_read.h"

struct top_samples {
	struct process_counters *before, *now;
	size_t before_count, now_count;
	double seconds; /* between the two */
};

/* In their order. */
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

struct top_view {
	enum top_column sort;
	bool reversed; /* numbers begin with the largest unless reversed, PIDs and names with the smallest */
	bool colour;
	size_t rows; /* the other processes are counted */
};

/* ---- top.c --------------------------------------------------------------------------------------------------------- */

/** Returns the rate per second; 0 without an earlier sample, or if the counter went back. */
double top_rate(const struct top_samples *samples, const struct process_counters *process, enum known_counter counter);

/** Returns the number of existing queue pairs. */
uint64_t top_qps(const struct process_counters *process);

/** Returns the number of failures and discarded packets. */
uint64_t top_errors(const struct process_counters *process);

/** Returns the used links, or "-". */
const char *top_links(const struct process_counters *process);

/* ---- top_table.c --------------------------------------------------------------------------------------------------- */

/** 80 columns wide, with a line of totals. Sorts @samples->now. */
void top_table_print(struct top_samples *samples, const struct top_view *view);

/** @name: as in --sort. Returns false if there is none. */
bool top_column_find(const char *name, enum top_column *column);

const char *top_column_name(enum top_column column);

/* ---- top_terminal.c ------------------------------------------------------------------------------------------------ */

/** Switches to single keys without echo, until the process exits, is stopped or is ended by a signal. */
void top_terminal_begin(void);

size_t top_terminal_lines(void);

/** Waits @seconds for a key, or returns 0. */
char top_terminal_key(double seconds);

#endif
