/* SPDX-License-Identifier: BSD-2-Clause */
/* `softhca run --error-exitcode`. The caller owns a struct run_errors; one thread. */
#ifndef SOFTHCA_TOOL_RUN_ERRORS_H
#define SOFTHCA_TOOL_RUN_ERRORS_H

struct run_errors {
	int status;         /* if anything was explained; 0: no such option */
	char directory[32]; /* directory of the file */
	char marks[80];     /* file to which each process that explains something appends (explain/sink.h) */
};

/** Makes the file and puts its name into the environment. @option: value, or NULL. Exits with a message on failure. */
void run_errors_begin(struct run_errors *errors, const char *option);

/** Returns @status, as in wait(2), or another status if anything was explained. */
int run_errors_status(struct run_errors *errors, int status);

#endif
