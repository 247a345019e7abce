/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of numbered objects: 24-bit index -> pointer, in two levels, so a lookup takes two loads. Readers take no
 * lock; they must be inside an epoch section. Changes take the table's lock. Freed indices are reused first in, first
 * out, so that a stale number stays invalid for long. Indices come from one range or, in a table with a source, from
 * several. Owner: struct hca or the registry, which live until the process ends; the leaves live as long.
 */
#ifndef SOFTHCA_CORE_ID_TABLE_H
#define SOFTHCA_CORE_ID_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define ID_LEAF_BITS 12
#define ID_LEAF_SIZE (1u << ID_LEAF_BITS)
#define ID_BITS 24

/* Source of index ranges, shared with other processes. Called under the table's lock. */
struct id_source {
	/** Provides a new range: @first … @limit - 1. Returns 0 or a negative errno. */
	int (*more)(uint32_t *first, uint32_t *limit);
	/** Returns true if this process still has the range of @index; otherwise @index is not reused. */
	bool (*owns)(uint32_t index);
};

/* An entry is an object's address; while free, the next free index << 1 | 1; ID_RESERVED; or 0: never allocated. */
#define ID_RESERVED UINTPTR_MAX

struct id_table {
	uintptr_t *leaf[1u << (ID_BITS - ID_LEAF_BITS)];
	pthread_mutex_t lock;
	const struct id_source *source; /* or NULL: there is one range */
	uint32_t limit;                 /* end of the range of fresh indices */
	uint32_t fresh;                 /* lowest index of that range never allocated */
	uint32_t wrap_to, wrap_limit;   /* next range; empty: none */
	uint32_t rest;                  /* released indices that are held back while fresh ones remain */
	uint32_t free_first;            /* FIFO of released indices; 0: empty (index 0 is never allocated) */
	uint32_t free_last;
	uint32_t free_count;
};

/** Prepares a table of indices @first … @limit - 1; @first is at least 1, @limit at most 2^24. */
void id_table_init(struct id_table *table, uint32_t first, uint32_t limit);
/** Makes an empty table with one range allocate from @begin on; the indices before it come last. */
void id_table_begin_at(struct id_table *table, uint32_t begin);
/** Prepares a table of indices from @source, at least 1. @rest released indices are held back, at least 1. */
void id_table_init_from(struct id_table *table, const struct id_source *source, uint32_t rest);
/**
 * Keeps the parent's allocated indices in a forked child and never allocates any of the parent's again. No-op without a
 * source. The lock is free, or this process has one thread.
 */
void id_table_after_fork(struct id_table *table);

/** Reserves an index; lookups of it return NULL until id_table_publish. Returns 0 or -ENOMEM. */
int id_table_alloc(struct id_table *table, uint32_t *index);
/** Makes @object (at least 2-aligned) reachable under @index. */
void id_table_publish(struct id_table *table, uint32_t index, void *object);
/** Makes the index unreachable; it is not reused before id_table_release. */
void id_table_unpublish(struct id_table *table, uint32_t index);
void id_table_release(struct id_table *table, uint32_t index);

/** Returns true if @index is allocated and not published. */
bool id_table_is_reserved(struct id_table *table, uint32_t index);

/** Returns true if @index was allocated before and has no object now. Takes no lock; may be outdated. */
bool id_table_was_used(const struct id_table *table, uint32_t index);

/** Returns the object under @index, or NULL. Inside an epoch section. */
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

/** Returns the first object from *@index on, whose index becomes *@index, or NULL. Inside an epoch section. */
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
