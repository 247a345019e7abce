/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbered objects. */
#include "core/id_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void id_table_init(struct id_table *table, uint32_t first, uint32_t limit)
{
	memset(table, 0, sizeof(*table));
	pthread_mutex_init(&table->lock, NULL);
	table->fresh = first;
	table->limit = limit;
	/* One leaf is held back: stale numbers stay invalid for long, and the table stays small. */
	table->rest = ID_LEAF_SIZE;
}

void id_table_begin_at(struct id_table *table, uint32_t begin)
{
	table->wrap_to = table->fresh;
	table->wrap_limit = table->fresh = begin;
}

void id_table_init_from(struct id_table *table, const struct id_source *source, uint32_t rest)
{
	id_table_init(table, 0, 0);
	table->source = source;
	table->rest = rest;
}

void id_table_after_fork(struct id_table *table)
{
	if (!table->source)
		return;
	table->fresh = table->limit = 0;
	table->free_first = table->free_last = 0;
	table->free_count = 0;
}

static uintptr_t *id_entry(const struct id_table *table, uint32_t index)
{
	return &table->leaf[index >> ID_LEAF_BITS][index & (ID_LEAF_SIZE - 1)];
}

static void set_entry(struct id_table *table, uint32_t index, uintptr_t value)
{
	__atomic_store_n(id_entry(table, index), value, __ATOMIC_RELEASE);
}

/* Switches to the next range of fresh indices. Returns 0 or a negative errno. */
static int next_range(struct id_table *table)
{
	if (table->source)
		return table->source->more(&table->fresh, &table->limit);
	if (table->wrap_to >= table->wrap_limit)
		return -ENOMEM;
	table->fresh = table->wrap_to;
	table->limit = table->wrap_limit;
	table->wrap_limit = 0;
	return 0;
}

static int take_fresh(struct id_table *table, uint32_t *index)
{
	uintptr_t **leaf;

	if (table->fresh >= table->limit && next_range(table))
		return -ENOMEM;
	leaf = &table->leaf[table->fresh >> ID_LEAF_BITS];
	if (!*leaf) {
		uintptr_t *entries = calloc(ID_LEAF_SIZE, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		__atomic_store_n(leaf, entries, __ATOMIC_RELEASE);
	}
	*index = table->fresh++;
	return 0;
}

static int take_returned(struct id_table *table, uint32_t *index)
{
	if (!table->free_first)
		return -ENOMEM;
	*index = table->free_first;
	table->free_first = *id_entry(table, *index) >> 1;
	if (!table->free_first)
		table->free_last = 0;
	table->free_count--;
	return 0;
}

int id_table_alloc(struct id_table *table, uint32_t *index)
{
	int error = -ENOMEM;

	pthread_mutex_lock(&table->lock);
	if (table->free_count < table->rest)
		error = take_fresh(table, index);
	if (error)
		error = take_returned(table, index);
	if (!error)
		set_entry(table, *index, ID_RESERVED);
	pthread_mutex_unlock(&table->lock);
	return error;
}

void id_table_publish(struct id_table *table, uint32_t index, void *object)
{
	set_entry(table, index, (uintptr_t)object);
}

void id_table_unpublish(struct id_table *table, uint32_t index)
{
	set_entry(table, index, ID_RESERVED);
}

bool id_table_is_reserved(struct id_table *table, uint32_t index)
{
	bool reserved;

	pthread_mutex_lock(&table->lock);
	reserved =
		index < 1u << ID_BITS && table->leaf[index >> ID_LEAF_BITS] && *id_entry(table, index) == ID_RESERVED;
	pthread_mutex_unlock(&table->lock);
	return reserved;
}

bool id_table_was_used(const struct id_table *table, uint32_t index)
{
	const uintptr_t *leaf;

	if (index >= 1u << ID_BITS)
		return false;
	leaf = __atomic_load_n(&table->leaf[index >> ID_LEAF_BITS], __ATOMIC_ACQUIRE);
	return leaf && __atomic_load_n(&leaf[index & (ID_LEAF_SIZE - 1)], __ATOMIC_ACQUIRE) & 1;
}

static void append_returned(struct id_table *table, uint32_t index)
{
	if (table->free_last)
		set_entry(table, table->free_last, (uintptr_t)index << 1 | 1);
	else
		table->free_first = index;
	table->free_last = index;
	table->free_count++;
}

void id_table_release(struct id_table *table, uint32_t index)
{
	pthread_mutex_lock(&table->lock);
	set_entry(table, index, 1);
	if (!table->source || table->source->owns(index))
		append_returned(table, index);
	pthread_mutex_unlock(&table->lock);
}
