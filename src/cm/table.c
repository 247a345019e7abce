/* SPDX-License-Identifier: BSD-2-Clause */
/* Table that leads from a message to its id, see table.h. */
#include "cm/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 64, KEY_WORDS = sizeof(((struct cm_key *)0)->of) / sizeof(uint64_t) };

static uint64_t hash_mix(uint64_t value)
{
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	value ^= value >> 32;
	value *= UINT64_C(0xd6e8feb86659fd93);
	return value ^ value >> 32;
}

static struct cm_entry **table_bucket(const struct cm_table *table, const struct cm_key *key)
{
	uint64_t hash = hash_mix(table->secret ^ ((uint64_t)key->kind << 32 | key->number));

	for (uint32_t i = 0; i < KEY_WORDS; i++)
		hash = hash_mix(hash ^ key->of[i]);
	return &table->buckets[hash & (table->size - 1)];
}

int cm_table_init(struct cm_table *table, uint64_t secret)
{
	*table = (struct cm_table){.size = FIRST_SIZE, .secret = secret};
	table->buckets = calloc(table->size, sizeof(*table->buckets));
	return table->buckets ? 0 : -ENOMEM;
}

void cm_table_free(struct cm_table *table)
{
	free(table->buckets);
}

static void link_entry(struct cm_table *table, struct cm_entry *entry)
{
	struct cm_entry **bucket = table_bucket(table, &entry->key);

	entry->next = *bucket;
	if (entry->next)
		entry->next->link = &entry->next;
	entry->link = bucket;
	*bucket = entry;
}

static void table_grow(struct cm_table *table)
{
	struct cm_table larger = {.size = table->size * 2, .count = table->count, .secret = table->secret};

	larger.buckets = calloc(larger.size, sizeof(*larger.buckets));
	if (!larger.buckets)
		return;
	for (uint64_t i = 0; i < table->size; i++)
		for (struct cm_entry *entry = table->buckets[i], *next; entry; entry = next) {
			next = entry->next;
			link_entry(&larger, entry);
		}
	free(table->buckets);
	*table = larger;
}

void cm_table_enter(struct cm_table *table, struct cm_entry *entry, const struct cm_key *key)
{
	if (table->count >= table->size)
		table_grow(table);
	entry->key = *key;
	link_entry(table, entry);
	table->count++;
}

void cm_table_remove(struct cm_table *table, struct cm_entry *entry)
{
	if (!entry->link)
		return;
	*entry->link = entry->next;
	if (entry->next)
		entry->next->link = entry->link;
	entry->link = NULL;
	table->count--;
}

static bool keys_are_equal(const struct cm_key *a, const struct cm_key *b)
{
	return a->kind == b->kind && a->number == b->number && !memcmp(a->of, b->of, sizeof(a->of));
}

struct cm_entry *cm_table_find(const struct cm_table *table, const struct cm_key *key)
{
	struct cm_entry *entry = *table_bucket(table, key);

	while (entry && !keys_are_equal(&entry->key, key))
		entry = entry->next;
	return entry;
}
