/* SPDX-License-Identifier: BSD-2-Clause */
/* Open addressing, never more than half full; see timeline_map.h. */
#include "tool/timeline_map.h"

#include <stdlib.h>

#include "tool/tool.h"

static struct map_entry *find(const struct map *map, uint64_t key)
{
	uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(mixed ^ mixed >> 32) & (map->room - 1);

	while (map->entries[i].value != MAP_NONE && map->entries[i].key != key)
		i = (i + 1) & (map->room - 1);
	return &map->entries[i];
}

static void grow(struct map *map)
{
	struct map old = *map;

	map->room = old.room ? 2 * old.room : 1024;
	map->entries = reallocarray(NULL, map->room, sizeof(*map->entries));
	if (!map->entries)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (size_t i = 0; i < map->room; i++)
		map->entries[i].value = MAP_NONE;
	for (size_t i = 0; i < old.room; i++)
		if (old.entries[i].value != MAP_NONE)
			*find(map, old.entries[i].key) = old.entries[i];
	free(old.entries);
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	return map->room ? find(map, key)->value : MAP_NONE;
}

void map_set(struct map *map, uint64_t key, uint32_t value)
{
	struct map_entry *entry;

	if (2 * map->count >= map->room)
		grow(map);
	entry = find(map, key);
	map->count += entry->value == MAP_NONE;
	*entry = (struct map_entry){key, value};
}
