/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `make bench-count` counts: operations, each run a known number of times in counted(). count.py runs the program
 * under valgrind's callgrind, which counts within that function alone and dumps whenever it returns. Each round of an
 * operation makes two dumps, of few operations and of many, so that their difference is operations and nothing else.
 *
 * The objects are those of the benchmark (bench.h).
 */
#ifndef SOFTHCA_BENCH_COUNT_H
#define SOFTHCA_BENCH_COUNT_H

#include "../bench.h"

struct operation {
	const char *name;
	work_fn *run;
	void *subject;
	uint32_t batch; /* operations that `run` makes of a count of 1 */
};

struct operations {
	struct operation list[32];
	size_t count;
};

/**
 * run(@subject, @count). callgrind finds this function by its name, and counts from its first instruction to its last, with
 * what it calls, in the thread that is in it.
 */
void counted(work_fn *run, void *subject, uint64_t count);

/** Appends a copy. The name is not copied. */
void add_operation(struct operations *operations, const struct operation *operation);

/** Those that are counted over each link but the local one. */
void add_link_operations(struct operations *operations, struct device *device);
/** Small requests, one at a time and in lists. */
void add_small_operations(struct operations *operations, struct device *device);
/** Datagrams, keys, windows, blocks, and 4 KiB. */
void add_further_operations(struct operations *operations, struct device *device);

#endif
