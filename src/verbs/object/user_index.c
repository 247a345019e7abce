/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every CQE contains the user index, so pollers look it up without a lock: a leaf lives as long as its context, and
 * entries are single pointers.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/object/objects.h"

enum {
	LEAF_SHIFT = 10,
	LEAF_ENTRIES = 1 << LEAF_SHIFT,
	INDEX_COUNT = 1 << 20, /* part of the 2^24 indices that a CQE can encode; more than LIMIT_MAX_QP */
};

/* Content of an unused leaf. Never written, although not const. */
static int64_t no_leaf[LEAF_ENTRIES];

void user_index_init(struct user_index_table *table)
{
	queue_lock_init(&table->lock, LOCK_LEVEL_USER_INDEX, false);
	for (size_t i = 0; i < sizeof(table->leaf) / sizeof(table->leaf[0]); i++)
		table->leaf[i] = no_leaf;
	table->next = 0;
}

void user_index_destroy(struct user_index_table *table)
{
	for (size_t i = 0; i < sizeof(table->leaf) / sizeof(table->leaf[0]); i++)
		if (table->leaf[i] != no_leaf)
			free(table->leaf[i]);
	queue_lock_destroy(&table->lock);
}

/* Returns the leaf, allocated if necessary; NULL without memory. The lock is held. */
static int64_t *index_leaf(struct user_index_table *table, uint32_t index)
{
	int64_t **place = &table->leaf[index >> LEAF_SHIFT], *leaf = *place;

	if (leaf == no_leaf) {
		leaf = calloc(LEAF_ENTRIES, sizeof(*leaf));
		if (leaf)
			__atomic_store_n(place, leaf, __ATOMIC_RELEASE);
	}
	return leaf;
}

/* Adds @entry at the lowest free index: all indices below `next` are in use. */
static int index_table_add(struct user_index_table *table, int64_t entry, uint32_t *index)
{
	int result = -ENOMEM;

	queue_lock(&table->lock);
	for (uint32_t i = table->next; i < INDEX_COUNT; i++) {
		int64_t *leaf = index_leaf(table, i);

		if (!leaf)
			break;
		if (leaf[i & (LEAF_ENTRIES - 1)])
			continue;
		__atomic_store_n(&leaf[i & (LEAF_ENTRIES - 1)], entry, __ATOMIC_RELEASE);
		table->next = i + 1;
		*index = i;
		result = 0;
		break;
	}
	queue_unlock(&table->lock);
	return result;
}

int user_index_add(struct user_index_table *table, struct user_qp *qp, uint32_t *index)
{
	return index_table_add(table, (int64_t)(uintptr_t)qp, index);
}

int user_index_add_srq(struct user_index_table *table, struct user_srq *srq, uint32_t *index)
{
	return index_table_add(table, -(int64_t)(uintptr_t)srq, index);
}

void user_index_remove(struct user_index_table *table, uint32_t index)
{
	queue_lock(&table->lock);
	__atomic_store_n(&table->leaf[index >> LEAF_SHIFT][index & (LEAF_ENTRIES - 1)], 0, __ATOMIC_RELEASE);
	if (index < table->next)
		table->next = index;
	queue_unlock(&table->lock);
}
