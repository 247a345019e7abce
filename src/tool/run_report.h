/* SPDX-License-Identifier: BSD-2-Clause */
/* `softhca run --report`. The caller owns a struct run_report; one thread. */
#ifndef SOFTHCA_TOOL_RUN_REPORT_H
#define SOFTHCA_TOOL_RUN_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "core/settings.h"

enum { RUN_REPORT_OUTPUTS = 5 };

struct run_report {
	const char *output;             /* name of the page; NULL: no page */
	char path[4096];                /* path of the page, made from @output */
	char directory[4096];           /* absolute; the script that makes the page removes it */
	FILE *explanations;             /* new lines go to standard error */
	char *more[RUN_REPORT_OUTPUTS]; /* chosen by the user with other options */
	int more_count;
};

/**
 * Redirects outputs in @settings to a new directory, except those that the user chose. Exits with a message if the page
 * @output cannot be written, or without Python.
 */
void run_report_begin(struct run_report *report, struct settings *settings, const char *output);

/** Copies new explanations to standard error. */
void run_report_tell(struct run_report *report);

/**
 * Makes the page. @status: as in wait(2). @began, @ended: ns of CLOCK_REALTIME. Reports an incomplete page on standard
 * error.
 */
void run_report_end(struct run_report *report, char *const command[], uint64_t began, uint64_t ended, int status);

#endif
