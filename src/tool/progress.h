/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a command is that takes longer than a second: a line on standard error, if that is a terminal, written over and over and
 * erased at the end. For one thread.
 */
#ifndef SOFTHCA_TOOL_PROGRESS_H
#define SOFTHCA_TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	const char *what;
	int64_t next_ms; /* of CLOCK_MONOTONIC: when the line is written next; INT64_MAX: never */
	bool shown;
};

/** Begins @what ("making the timeline"), whose result goes to @out: on a terminal that is progress enough. */
void progress_begin(struct progress *progress, const char *what, FILE *out);

/** @done of @all are done, @all not 0. Cheap enough to be called for each of a few thousand. */
void progress_tell(struct progress *progress, uint64_t done, uint64_t all);

/** Erases the line, if there is one. */
void progress_end(struct progress *progress);

#endif
