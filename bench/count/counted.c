/* SPDX-License-Identifier: BSD-2-Clause */
/* Alone in its file, so that main.c calls it and no copy of it. See count.h. */
#include "count.h"

__attribute__((noinline)) void counted(work_fn *run, void *subject, uint64_t count)
{
	run(subject, count);
	memory_barrier_of_compiler(); /* no tail call: the function has to be there when `run` returns */
}
