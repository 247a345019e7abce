/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying records, see records.h. */
#include "mkey/records.h"

#include <string.h>

/* Entries are copied one after the other in blocks of this many bytes: the contiguous side stays in the L1 cache. */
#define BLOCK_BYTES 8192

uint64_t walk_repetitions(const struct walk *walk)
{
	const struct walk_level *level = &walk->level[0];

	if (!walk->left || !walk->resolved || level->entry || level->inside || level->map->form != LAYOUT_REPEAT)
		return 0;
	return level->left / level->map->period;
}

/*
 * One case per size that the compiler can turn into moves; layouts repeat one size many times. Through a buffer, since
 * the ranges may overlap: it stays in registers.
 */
#define EACH(size)                                                                                                     \
	for (uint64_t i = 0; i < count; i++, to += to_step, from += from_step) {                                       \
		struct {                                                                                               \
			uint8_t bytes[size];                                                                           \
		} record;                                                                                              \
		memcpy(&record, from, size);                                                                           \
		memcpy(to, &record, size);                                                                             \
	}

static void copy_each(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t bytes,
		      uint64_t count)
{
	switch (bytes) {
	case 1:
		EACH(1)
		break;
	case 2:
		EACH(2)
		break;
	case 4:
		EACH(4)
		break;
	case 8:
		EACH(8)
		break;
	case 16:
		EACH(16)
		break;
	case 32:
		EACH(32)
		break;
	case 64:
		EACH(64)
		break;
	case 128:
		EACH(128)
		break;
	default:
		for (uint64_t i = 0; i < count; i++, to += to_step, from += from_step)
			memmove(to, from, bytes);
	}
}

static void move_on(struct walk *walk, uint64_t count)
{
	struct walk_level *level = &walk->level[0];
	uint64_t bytes = count * level->map->period;

	level->repetition += count;
	level->left -= bytes;
	walk->left -= bytes;
}

static uint64_t block_of(uint64_t period, uint64_t count)
{
	uint64_t most = period < BLOCK_BYTES ? BLOCK_BYTES / period : 1;

	return count < most ? count : most;
}

static uint8_t *entry_memory(const struct walk *walk, uint32_t entry, uint64_t repetition)
{
	return (uint8_t *)((uintptr_t)walk->base[entry] + repetition * walk->level[0].map->entries[entry].stride);
}

void records_gather(struct walk *walk, uint8_t *memory, uint64_t count)
{
	const struct mapping *map = walk->level[0].map;

	while (count) {
		uint64_t block = block_of(map->period, count), repetition = walk->level[0].repetition;

		for (uint32_t i = 0; i < map->count; i++)
			copy_each(memory + map->entries[i].before, map->period, entry_memory(walk, i, repetition),
				  map->entries[i].stride, map->entries[i].bytes, block);
		memory += block * map->period;
		count -= block;
		move_on(walk, block);
	}
}

void records_scatter(struct walk *walk, const uint8_t *memory, uint64_t count)
{
	const struct mapping *map = walk->level[0].map;

	while (count) {
		uint64_t block = block_of(map->period, count), repetition = walk->level[0].repetition;

		for (uint32_t i = 0; i < map->count; i++)
			copy_each(entry_memory(walk, i, repetition), map->entries[i].stride,
				  memory + map->entries[i].before, map->period, map->entries[i].bytes, block);
		memory += block * map->period;
		count -= block;
		move_on(walk, block);
	}
}
