/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding of threads to processors, for the programs of two processes and those to compare with. */
#ifndef SOFTHCA_BENCH_LINKS_AFFINITY_H
#define SOFTHCA_BENCH_LINKS_AFFINITY_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Binds the calling thread to @cpu; ends the program if that is impossible. */
static inline void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "CPU %d: %s\n", cpu, strerror(errno));
		exit(1);
	}
}

#endif
