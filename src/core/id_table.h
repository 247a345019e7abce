/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbered objects: 24-bit index -> pointer, in two levels, so that a look-up costs two loads however many there are.
 *
 * Readers take no lock; they must be inside an epoch section and get NULL for indices that are free. Changes take the
 * table's lock. Freed indices are reused first in, first out, so that a stale number stays stale for long. Indices are those
 * of one range, or, of a table with a source, of ranges that are asked for one after the other.
 * Owner: struct hca or the registry, which live until the process ends; so do the leaves.
 */
#ifndef SOFTHCA_CORE_ID_TABLE_H
#define SOFTHCA_CORE_ID_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ID_LEAF_BITS 12
#define ID_LEAF_SIZE (1u << ID_LEAF_BITS)
#define ID_BITS 24

/* Where indices come from that others have a say in. Called under the table's lock. */
struct id_source {
	/** Gives another range: indices @first … @limit - 1, which nobody had from it. Returns 0 or a negative errno. */
	int (*more)(uint32_t *first, uint32_t *limit);
	/** True if @index is of such a range, and still this process's. Else it is not handed out again. */
	bool (*owns)(uint32_t index);
};

/* An entry is an object's address; while free, the next free index << 1 | 1; ID_RESERVED; or 0: never handed out. */
#define ID_RESERVED UINTPTR_MAX

struct id_table {
	uintptr_t *leaf[1u << (ID_BITS - ID_LEAF_BITS)];
	pthread_mutex_t lock;
	const struct id_source *source; /* or NULL: there is one range */
	uint32_t limit;                 /* end of the range that fresh indices come from */
	uint32_t fresh;                 /* lowest index of it never handed out */
	uint32_t wrap_to, wrap_limit;   /* the range that comes behind it; empty: none does */
	uint32_t rest;                  /* so many returned indices are kept back as long as there are fresh ones */
	uint32_t free_first;            /* FIFO of returned indices; 0: empty (index 0 is never handed out) */
	uint32_t free_last;
	uint32_t free_count;
};

/** Prepares an empty table of indices @first … @limit - 1; @first is at least 1, @limit at most 2^24. */
void id_table_init(struct id_table *table, uint32_t first, uint32_t limit);
/** Of an empty table of one range: index @begin of it is the first to be handed out, those in front of it are the last. */
void id_table_begin_at(struct id_table *table, uint32_t begin);
/** Prepares an empty table of indices that @source gives, at least 1; @rest of those that come back rest, at least 1. */
void id_table_init_from(struct id_table *table, const struct id_source *source, uint32_t rest);
/**
 * In a forked child: what was handed out by the parent stays what it is, and nothing that the parent had is handed out any
 * more. Does nothing to a table without a source. The lock is free, or this process has one thread.
 */
void id_table_after_fork(struct id_table *table);

/** Reserves an index; look-ups of it give NULL until id_table_publish. Returns 0 or -ENOMEM. */
int id_table_alloc(struct id_table *table, uint32_t *index);
/** Makes @object (at least 2-aligned) reachable under @index. */
void id_table_publish(struct id_table *table, uint32_t index, void *object);
/** Makes the index unreachable; it is not reused before id_table_release. */
void id_table_unpublish(struct id_table *table, uint32_t index);
/** Returns an unreachable index. */
void id_table_release(struct id_table *table, uint32_t index);

/** True if @index was handed out and nothing is published under it. */
bool id_table_is_reserved(struct id_table *table, uint32_t index);

/** True if @index was handed out before, and has no object now. No lock; the answer may be old. */
bool id_table_was_used(const struct id_table *table, uint32_t index);

/** The object under @index, or NULL. Inside an epoch section. */
static inline void *id_table_find(const struct id_table *table, uint32_t index)
{
	uintptr_t *leaf, entry;

	if (index >= 1u << ID_BITS)
		return NULL;
	leaf = __atomic_load_n(&table->leaf[index >> ID_LEAF_BITS], __ATOMIC_ACQUIRE);
	if (!leaf)
		return NULL;
	entry = __atomic_load_n(&leaf[index & (ID_LEAF_SIZE - 1)], __ATOMIC_ACQUIRE);
	return entry & 1 ? NULL : (void *)entry;
}

/** The first object at or behind *@index, which becomes its index, or NULL. Inside an epoch section. */
static inline void *id_table_next(const struct id_table *table, uint32_t *index)
{
	for (; *index < 1u << ID_BITS; ++*index) {
		void *object = id_table_find(table, *index);

		if (object)
			return object;
		if (!__atomic_load_n(&table->leaf[*index >> ID_LEAF_BITS], __ATOMIC_ACQUIRE))
			*index |= ID_LEAF_SIZE - 1;
	}
	return NULL;
}

#endif
