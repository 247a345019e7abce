/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies between layouts and contiguous memory. */
#include "mkey/records.h"

#include <string.h>

#include "mkey/copy.h"

/* Repetitions are copied in blocks of contiguous bytes, entry by entry, so that the block stays in the L1 cache. */
#define BLOCK_BYTES 8192

uint64_t walk_repetitions(const struct walk *walk)
{
	const struct walk_level *level = &walk->level[0];

	if (!walk->left || !walk->resolved || level->entry || level->inside || level->map->form != LAYOUT_REPEAT)
		return 0;
	return periods_in(level->left, level->map->period);
}

/*
 * Copies records of a constant size, which become register moves. Each is read whole first, because the ranges may
 * overlap.
 */
#define EACH(size)                                                                                                     \
	for (uint64_t i = 0; i < count; i++, to += to_step, from += from_step) {                                       \
		struct {                                                                                               \
			uint8_t bytes[size];                                                                           \
		} record;                                                                                              \
		memcpy(&record, from, size);                                                                           \
		memcpy(to, &record, size);                                                                             \
	}

static void record_copy_plain(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t bytes,
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

static bool always_supported(void)
{
	return true;
}

#ifdef __x86_64__
/* A cache line, moved with the widest registers of the enclosing function's target. */
typedef uint8_t line __attribute__((vector_size(64), aligned(1), may_alias));

#define EACH_LINES(lines)                                                                                              \
	for (uint64_t i = 0; i < count; i++, to += to_step, from += from_step) {                                       \
		line record[lines];                                                                                    \
		for (int j = 0; j < (lines); j++)                                                                      \
			record[j] = ((const line *)from)[j];                                                           \
		for (int j = 0; j < (lines); j++)                                                                      \
			((line *)to)[j] = record[j];                                                                   \
	}

#define WIDE_KERNEL(feature)                                                                                           \
	static bool has_##feature(void)                                                                                \
	{                                                                                                              \
		return __builtin_cpu_supports(#feature);                                                               \
	}                                                                                                              \
	__attribute__((target(#feature))) static void copy_##feature(uint8_t *to, uint64_t to_step,                    \
								     const uint8_t *from, uint64_t from_step,          \
								     uint64_t bytes, uint64_t count)                   \
	{                                                                                                              \
		if (bytes == sizeof(line))                                                                             \
			EACH_LINES(1)                                                                                  \
		else if (bytes == 2 * sizeof(line))                                                                    \
			EACH_LINES(2)                                                                                  \
		else                                                                                                   \
			record_copy_plain(to, to_step, from, from_step, bytes, count);                                 \
	}

WIDE_KERNEL(avx512f)
WIDE_KERNEL(avx2)
#endif

const struct record_kernel record_kernels[] = {
#ifdef __x86_64__
	{"avx512f", has_avx512f, copy_avx512f},
	{"avx2", has_avx2, copy_avx2},
#endif
	{"plain", always_supported, record_copy_plain},
	{0},
};

static record_copy *best_copy(void)
{
	const struct record_kernel *kernel = record_kernels;

	while (!kernel->supported())
		kernel++;
	return kernel->copy;
}

static void walk_skip_repetitions(struct walk *walk, uint64_t count)
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

/* @last: the last record ends the message and is stored with release. */
static inline void copy_records_last(record_copy *copy, uint8_t *to, uint64_t to_step, const uint8_t *from,
				     uint64_t from_step, uint64_t bytes, uint64_t count, bool last)
{
	copy(to, to_step, from, from_step, bytes, count - last);
	if (last)
		copy_bytes_last(to + (count - 1) * to_step, from + (count - 1) * from_step, bytes);
}

void records_gather(struct walk *walk, uint8_t *memory, uint64_t count, bool last)
{
	const struct mapping *map = walk->level[0].map;
	record_copy *copy = best_copy();

	while (count) {
		uint64_t block = block_of(map->period, count), repetition = walk->level[0].repetition;

		for (uint32_t i = 0; i < map->count; i++)
			copy_records_last(copy, memory + map->entries[i].before, map->period,
					  entry_memory(walk, i, repetition), map->entries[i].stride,
					  map->entries[i].bytes, block, last && block == count && i + 1 == map->count);
		memory += block * map->period;
		count -= block;
		walk_skip_repetitions(walk, block);
	}
}

void records_scatter(struct walk *walk, const uint8_t *memory, uint64_t count, bool last)
{
	const struct mapping *map = walk->level[0].map;
	record_copy *copy = best_copy();

	while (count) {
		uint64_t block = block_of(map->period, count), repetition = walk->level[0].repetition;

		for (uint32_t i = 0; i < map->count; i++)
			copy_records_last(copy, entry_memory(walk, i, repetition), map->entries[i].stride,
					  memory + map->entries[i].before, map->period, map->entries[i].bytes, block,
					  last && block == count && i + 1 == map->count);
		memory += block * map->period;
		count -= block;
		walk_skip_repetitions(walk, block);
	}
}

/* Takes the next piece of a list, at most @most bytes. Returns its length, 0 for an entry without bytes. */
static inline uint64_t next_in_list(struct walk *walk, uint64_t most, uint8_t **memory)
{
	struct walk_level *level = &walk->level[0];
	const struct layout_entry *entry = &level->map->entries[level->entry];
	uint64_t bytes = entry->bytes - level->inside;

	if (bytes > most)
		bytes = most;
	*memory = mapping_memory(walk->region, entry->address) + level->inside;
	level->inside += bytes;
	level->left -= bytes;
	if (level->inside == entry->bytes && level->left) {
		level->inside = 0;
		level->entry++;
	}
	walk->left -= bytes;
	return bytes;
}

static inline void copy_piece(uint8_t *to, const uint8_t *from, uint64_t bytes, bool last)
{
	if (last)
		copy_bytes_last(to, from, bytes);
	else
		copy_forward(to, from, bytes);
}

void list_gather(struct walk *walk, uint8_t *memory, uint64_t bytes, bool last)
{
	while (bytes) {
		uint8_t *piece;
		uint64_t length = next_in_list(walk, bytes, &piece);

		bytes -= length;
		copy_piece(memory, piece, length, last && !bytes);
		memory += length;
	}
}

void list_scatter(struct walk *walk, const uint8_t *memory, uint64_t bytes, bool last)
{
	while (bytes) {
		uint8_t *piece;
		uint64_t length = next_in_list(walk, bytes, &piece);

		bytes -= length;
		copy_piece(piece, memory, length, last && !bytes);
		memory += length;
	}
}
