/* SPDX-License-Identifier: BSD-2-Clause */
/* In a separate file, so that main.c calls it rather than a copy of it. See count.h. */
#include "count.h"

__attribute__((noinline)) void counted(work_fn *run, void *subject, uint64_t count)
{
	run(subject, count);
	memory_barrier_of_compiler(); /* prevents a tail call: the function must still be active when `run` returns */
}
