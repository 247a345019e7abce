/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of tests that start themselves again. */
#ifndef SOFTHCA_TESTS_RUN_AGAIN_H
#define SOFTHCA_TESTS_RUN_AGAIN_H

#include <stdlib.h>
#include <unistd.h>

/**
 * Fills @command with the words that start this program, @argument (which may be NULL) and NULL. Meson names the program
 * that runs those of another architecture (MESON_EXE_WRAPPER). Not thread safe.
 */
static inline void run_again_command(char *command[4], char *argument)
{
	static char itself[4096];
	char *wrapper = getenv("MESON_EXE_WRAPPER");
	ssize_t length = readlink("/proc/self/exe", itself, sizeof(itself) - 1);
	size_t words = 0;

	itself[length < 0 ? 0 : length] = 0;
	if (wrapper && *wrapper)
		command[words++] = wrapper;
	command[words++] = itself;
	command[words++] = argument;
	command[words] = NULL;
}

#endif
