/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations counted by `make bench-count`, each run a known number of times in counted(). count.py runs the program under
 * valgrind's callgrind, which counts only within that function and dumps whenever it returns. Each round of an operation makes
 * two dumps, of few operations and of many; their difference consists of operations only.
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
	uint32_t batch; /* operations that `run` performs per count */
};

struct operations {
	struct operation list[32];
	size_t count;
};

/**
 * Calls run(@subject, @count). callgrind finds this function by name, and counts from its first instruction to its last,
 * including calls, in the thread that executes it.
 */
void counted(work_fn *run, void *subject, uint64_t count);

/** Appends a copy. The name itself is not copied. */
void add_operation(struct operations *operations, const struct operation *operation);

/** Adds operations that are counted over each link except the local one. */
void add_link_operations(struct operations *operations, struct device *device);
/** Adds small requests, one at a time and in lists. */
void add_small_operations(struct operations *operations, struct device *device);
/** Adds datagrams, keys, windows, blocks, and 4 KiB. */
void add_further_operations(struct operations *operations, struct device *device);

#endif
