/* SPDX-License-Identifier: BSD-2-Clause */
/* The handle table, see handles.h. */
#include "verbs/object/handles.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define NO_HANDLE UINT32_MAX

struct handle_table {
	pthread_mutex_t lock;
	struct handle_entry *entries;
	uint32_t size;
	uint32_t first_free; /* list through next_free, or NO_HANDLE */
	uint32_t references; /* atomic */
};

struct handle_table *handle_table_new(void)
{
	struct handle_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	table->first_free = NO_HANDLE;
	table->references = 1;
	return table;
}

void handle_table_get(struct handle_table *table)
{
	__atomic_add_fetch(&table->references, 1, __ATOMIC_RELAXED);
}

void handle_table_put(struct handle_table *table)
{
	if (__atomic_sub_fetch(&table->references, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_destroy(&table->lock);
	free(table->entries);
	free(table);
}

void handle_table_freeze(struct handle_table *table)
{
	pthread_mutex_lock(&table->lock);
}

void handle_table_thaw(struct handle_table *table)
{
	pthread_mutex_unlock(&table->lock);
}

static void handle_set_free(struct handle_table *table, uint32_t handle)
{
	table->entries[handle].kind = HANDLE_FREE;
	table->entries[handle].next_free = table->first_free;
	table->first_free = handle;
}

static int handle_table_grow(struct handle_table *table)
{
	uint32_t size = table->size ? table->size * 2 : 16, handle;
	struct handle_entry *entries;

	if (size < table->size)
		return -ENOMEM;
	entries = realloc(table->entries, size * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	for (handle = size; handle > table->size; handle--)
		handle_set_free(table, handle - 1);
	table->size = size;
	return 0;
}

int handle_add(struct handle_table *table, const struct handle_entry *entry, uint32_t *handle)
{
	int error = 0;

	pthread_mutex_lock(&table->lock);
	if (table->first_free == NO_HANDLE)
		error = handle_table_grow(table);
	if (!error) {
		*handle = table->first_free;
		table->first_free = table->entries[*handle].next_free;
		table->entries[*handle] = *entry;
	}
	pthread_mutex_unlock(&table->lock);
	return error;
}

/* Returns the entry of @handle if it has @kind, or NULL. The lock is held. */
static struct handle_entry *handle_lookup(struct handle_table *table, enum handle_kind kind, uint32_t handle)
{
	return handle < table->size && table->entries[handle].kind == kind ? &table->entries[handle] : NULL;
}

bool handle_find(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry)
{
	struct handle_entry *found;

	pthread_mutex_lock(&table->lock);
	found = handle_lookup(table, kind, handle);
	if (found && entry)
		*entry = *found;
	pthread_mutex_unlock(&table->lock);
	return found;
}

static const void *handle_object(const struct handle_entry *entry)
{
	switch (entry->kind) {
	case HANDLE_PD:
		return entry->pd;
	case HANDLE_MR:
		return entry->key;
	case HANDLE_DM:
		return entry->dm;
	case HANDLE_FREE:
		break;
	}
	return NULL;
}

bool handle_names(struct handle_table *table, enum handle_kind kind, uint32_t handle, const void *object)
{
	const struct handle_entry *found;
	bool named;

	pthread_mutex_lock(&table->lock);
	found = handle_lookup(table, kind, handle);
	named = found && handle_object(found) == object;
	pthread_mutex_unlock(&table->lock);
	return named;
}

static bool imports_exist; /* atomic */

bool handle_imports_exist(void)
{
	return __atomic_load_n(&imports_exist, __ATOMIC_ACQUIRE);
}

void handle_imported(void)
{
	__atomic_store_n(&imports_exist, true, __ATOMIC_RELEASE);
}

void handle_update(struct handle_table *table, uint32_t handle, const struct handle_entry *entry)
{
	pthread_mutex_lock(&table->lock);
	if (handle_lookup(table, entry->kind, handle))
		table->entries[handle] = *entry;
	pthread_mutex_unlock(&table->lock);
}

int handle_remove(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry)
{
	struct handle_entry *found;
	int error = -EINVAL;

	pthread_mutex_lock(&table->lock);
	found = handle_lookup(table, kind, handle);
	if (found) {
		error = found->references ? -EBUSY : 0;
		if (entry)
			*entry = *found;
	}
	if (!error)
		handle_set_free(table, handle);
	pthread_mutex_unlock(&table->lock);
	return error;
}

int handle_get(struct handle_table *table, uint32_t handle)
{
	struct handle_entry *found;

	pthread_mutex_lock(&table->lock);
	found = handle_lookup(table, HANDLE_DM, handle);
	if (found)
		found->references++;
	pthread_mutex_unlock(&table->lock);
	return found ? 0 : -EINVAL;
}

void handle_put(struct handle_table *table, uint32_t handle)
{
	struct handle_entry *found;

	pthread_mutex_lock(&table->lock);
	found = handle_lookup(table, HANDLE_DM, handle);
	if (found)
		found->references--;
	pthread_mutex_unlock(&table->lock);
}
