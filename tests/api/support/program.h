/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test program: two sides and an RC pair between them for each case, opened before it and closed behind it.
 * Everything is compared and released at the end of the case.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_PROGRAM_H
#define SOFTHCA_TESTS_API_SUPPORT_PROGRAM_H

#include "support/mkey.h"

extern struct side client, server;
extern struct pair pair;

/** How much memory the sides have from the next case on; SIDE_BYTES unless main() says otherwise. */
void program_memory(size_t bytes);

/** @length bytes in the middle of the client's memory. */
struct view client_memory(size_t length);

int program_open(void **state);
int program_close(void **state);

/* A row of the table of cases. */
#define API_CASE(function) cmocka_unit_test_setup_teardown(function, program_open, program_close)

/** Runs the cases of struct CMUnitTest @cases[]; returns the exit status. */
#define run_cases(name, cases) (program_choose_case(), cmocka_run_group_tests_name(name, cases, NULL, NULL))
void program_choose_case(void);

/**
 * The profile is chosen when the first device is opened. Returns true if this process has @profile ("man" or
 * "connectx"): the caller goes on. If not, runs the case in a child process that executes the program anew with
 * SOFTHCA_PROFILE set, fails if that fails, and returns false: the caller returns.
 *
 *	if (!in_profile("connectx", __func__))
 *		return;
 */
bool in_profile(const char *profile, const char *test_case);
/** The same for another setting: @variable has @value, or is not set and @value is its default @fallback. */
bool in_setting(const char *variable, const char *value, const char *fallback, const char *test_case);

#endif
