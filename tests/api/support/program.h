/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test program: two sides and an RC pair between them for each case, opened before the case and closed after it.
 * Everything is compared and released at the end of the case.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_PROGRAM_H
#define SOFTHCA_TESTS_API_SUPPORT_PROGRAM_H

#include "support/mkey.h"

extern struct side client, server;
extern struct pair pair;

/** Sets the memory size of the sides from the next case on; the default is SIDE_BYTES. */
void program_memory(size_t bytes);

/** Returns a view of @length bytes in the middle of the client's memory. */
struct view client_memory(size_t length);

int program_open(void **state);
int program_close(void **state);

/** Runs each case of the program between program_open() and program_close(), as programs without a main() do. */
#define run_program() run_cases(.setup = program_open, .teardown = program_close)

/**
 * Returns true if this process runs with @profile ("man" or "connectx"), and the caller continues. If not, runs the
 * case in a child process that executes the program anew with SOFTHCA_PROFILE set (the profile is chosen when the first
 * device is opened), fails if the child fails, and returns false: the caller returns.
 *
 *	if (!in_profile("connectx", __func__))
 *		return;
 */
bool in_profile(const char *profile, const char *test_case);
/** As in_profile(), for another setting: @variable has @value, or is not set and @value is its default @fallback. */
bool in_setting(const char *variable, const char *value, const char *fallback, const char *test_case);

#endif
