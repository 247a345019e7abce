/* SPDX-License-Identifier: BSD-2-Clause */
/* A table from numbers to places in an array, which grows. Nothing is taken out of it. */
#ifndef SOFTHCA_TOOL_TIMELINE_MAP_H
#define SOFTHCA_TOOL_TIMELINE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map {
	struct map_entry {
		uint64_t key;
		uint32_t value; /* MAP_NONE: no entry */
	} * entries;
	size_t room, count;
};

/** The value of @key, or MAP_NONE. */
uint32_t map_get(const struct map *map, uint64_t key);
/** Gives @key its @value, which is not MAP_NONE. Exits without memory. */
void map_set(struct map *map, uint64_t key, uint32_t value);

#endif
