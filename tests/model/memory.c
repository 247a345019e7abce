/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and its shadow, see memory.h. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void memory_open(struct memory *memory, struct choose *c)
{
	for (int block = 0; block < PLAIN_BLOCKS; block++) {
		memory->real[block] =
			mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory->real[block] == MAP_FAILED)
			abort();
		memory_scribble(memory, c, block, 0, BLOCK_BYTES);
	}
}

void memory_close(struct memory *memory)
{
	for (int block = 0; block < PLAIN_BLOCKS; block++)
		munmap(memory->real[block], BLOCK_BYTES);
}

void memory_scribble(struct memory *memory, struct choose *c, int block, uint64_t offset, uint64_t length)
{
	uint8_t *shadow = memory->shadow[block] + offset;

	for (uint64_t i = 0; i < length; i++)
		shadow[i] = (uint8_t)choose_bits(c);
	if (block != DEVICE_BLOCK)
		memcpy(memory->real[block] + offset, shadow, length);
	else if (ibv_memcpy_to_dm(memory->device_memory, offset, shadow, length))
		abort();
}

bool memory_compare(struct memory *memory, int *block, uint64_t *offset, uint8_t *is, uint8_t *should)
{
	static uint8_t copy[BLOCK_BYTES];

	for (int b = 0; b < BLOCKS; b++) {
		uint8_t *real = b == DEVICE_BLOCK ? copy : memory->real[b];

		if (b == DEVICE_BLOCK && ibv_memcpy_from_dm(copy, memory->device_memory, 0, BLOCK_BYTES))
			abort();
		if (!memory->any_loose && !memcmp(real, memory->shadow[b], BLOCK_BYTES))
			continue;
		for (uint64_t i = 0; i < BLOCK_BYTES; i++) {
			if (memory->loose[b][i]) {
				memory->loose[b][i] = false;
				memory->shadow[b][i] = real[i];
			}
			if (real[i] == memory->shadow[b][i])
				continue;
			*block = b;
			*offset = i;
			*is = real[i];
			*should = memory->shadow[b][i];
			return false;
		}
	}
	memory->any_loose = false;
	return true;
}
