/* SPDX-License-Identifier: BSD-2-Clause */
/* Monotonic time, for deadlines and measurements. */
#ifndef SOFTHCA_TESTS_SUPPORT_TEST_CLOCK_H
#define SOFTHCA_TESTS_SUPPORT_TEST_CLOCK_H

#include <time.h>

static inline double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&time, &time))
		;
}

#endif
