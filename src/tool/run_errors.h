/* SPDX-License-Identifier: BSD-2-Clause */
/* `softhca run --error-exitcode`. The caller owns a struct run_errors; one thread. */
#ifndef SOFTHCA_TOOL_RUN_ERRORS_H
#define SOFTHCA_TOOL_RUN_ERRORS_H

struct run_errors {
	int status;         /* exit status if anything was explained; 0: no such option */
	char directory[32]; /* directory of the file */
	char marks[80];     /* file to which each process that explains something appends (explain/sink.h) */
};

/**
 * Makes the file and puts its name into the environment. @option: the value of the option, NULL if not given. Exits
 * with a message if the value is wrong or the file cannot be made.
 */
void run_errors_begin(struct run_errors *errors, const char *option);

/**
 * Returns the status of the program that ended with @status, both as in wait(2): another one if anything was explained.
 */
int run_errors_status(struct run_errors *errors, int status);

#endif
