/* SPDX-License-Identifier: BSD-2-Clause */
/* `softhca run --error-exitcode`. A struct run_errors is the caller's; one thread. */
#ifndef SOFTHCA_TOOL_RUN_ERRORS_H
#define SOFTHCA_TOOL_RUN_ERRORS_H

struct run_errors {
	int status;     /* to end with if anything was explained; 0: the option was not given */
	char marks[64]; /* file to which each process appends that has explained something (explain/sink.h) */
};

/**
 * Makes the file and names it in the environment. @option: the value of the option, NULL: it was not given. Exits with one line if the
 * value is wrong or the file cannot be made.
 */
void run_errors_begin(struct run_errors *errors, const char *option);

/** The status of the program that ended with @status, both as wait(2) has it: another one if anything was explained. */
int run_errors_status(struct run_errors *errors, int status);

#endif
