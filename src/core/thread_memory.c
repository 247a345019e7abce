/* SPDX-License-Identifier: BSD-2-Clause */
/* Slow path of per-thread memory. */
#include "core/thread_memory.h"

#include <stdlib.h>
#include <time.h>

struct thread_memory thread_memory_take_elsewhere(size_t bytes)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct thread_memory memory = {.before = THREAD_MEMORY_OTHER};

	while (!(memory.place = aligned_alloc(64, bytes)))
		nanosleep(&pause, NULL);
	return memory;
}

void thread_memory_give_elsewhere(const struct thread_memory *memory)
{
	free(memory->place);
}
