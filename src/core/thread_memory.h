/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Per-thread memory for variables that are too large for the stack: programs call the data path on stacks of 16 KiB
 * (coroutines). It is a stack of THREAD_MEMORY_BYTES next to the thread's epoch slot (core/epoch.h).
 */
#ifndef SOFTHCA_CORE_THREAD_MEMORY_H
#define SOFTHCA_CORE_THREAD_MEMORY_H

#include <stddef.h>

#include "core/epoch.h"

/**
 * Declares @name, a pointer to a variable of @type that lives until the end of the block. Its contents are undefined.
 */
#define THREAD_VARIABLE(type, name)                                                                                    \
	__attribute__((cleanup(thread_memory_give))) const struct thread_memory name##_memory =                        \
		thread_memory_take(sizeof(type));                                                                      \
	type *const name = name##_memory.place

struct thread_memory {
	void *place;
	uint32_t before; /* bytes in use before this variable; THREAD_MEMORY_OTHER: on the heap */
};

#define THREAD_MEMORY_OTHER UINT32_MAX

/* Slow path, for more variables at once than the thread has room for. Blocks until memory is available. */
struct thread_memory thread_memory_take_elsewhere(size_t bytes);
void thread_memory_give_elsewhere(const struct thread_memory *memory);

static inline struct thread_memory thread_memory_take(size_t bytes)
{
	struct epoch_slot *slot = epoch_this_thread;
	struct thread_memory memory;

	if (__builtin_expect(!slot, 0))
		slot = epoch_attach();
	bytes = (bytes + 63) & ~(size_t)63;
	if (__builtin_expect(bytes > THREAD_MEMORY_BYTES - slot->memory_used, 0))
		return thread_memory_take_elsewhere(bytes);
	memory = (struct thread_memory){slot->memory + slot->memory_used, slot->memory_used};
	slot->memory_used += (uint32_t)bytes;
	return memory;
}

static inline void thread_memory_give(const struct thread_memory *memory)
{
	if (__builtin_expect(memory->before == THREAD_MEMORY_OTHER, 0))
		thread_memory_give_elsewhere(memory);
	else
		epoch_this_thread->memory_used = memory->before;
}

#endif
