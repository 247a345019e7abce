/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles: what the kernel numbers for a real adapter, so that ibv_import_pd(3), ibv_import_mr(3) and
 * ibv_import_dm(3) can make a second driver object of one device object. The table says which device objects
 * exist; a destroy call through any of the driver objects takes the entry out, the other driver objects are
 * then good for unimport only.
 *
 * Owner: the context that made the table and those imported from it, by references. Any thread may call.
 */
#ifndef SOFTHCA_VERBS_OBJECT_HANDLES_H
#define SOFTHCA_VERBS_OBJECT_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/commands.h"

enum handle_kind { HANDLE_FREE, HANDLE_PD, HANDLE_MR, HANDLE_DM };

struct handle_entry {
	enum handle_kind kind;
	uint32_t references; /* of a DM: MRs over it */
	union {
		struct hca_pd *pd;
		struct mkey *key;
		void *dm; /* host address */
		uint32_t next_free;
	};
	size_t length; /* of an MR, a DM */
	/* of an MR */
	uint64_t start;
	unsigned int access;
	enum mr_kind mr_kind;
	uint32_t dm_handle;
};

struct handle_table;

/** An empty table with one reference, or NULL without memory. */
struct handle_table *handle_table_new(void);
void handle_table_get(struct handle_table *table);
/** Holds all changes off, for fork(2): a child must not find the table half changed by a thread it does not have. */
void handle_table_freeze(struct handle_table *table);
void handle_table_thaw(struct handle_table *table);
/** Drops a reference; the last one frees the table, not what it lists. */
void handle_table_put(struct handle_table *table);

/** Copies @entry into the table. Returns 0 and its number through @handle, or -ENOMEM. */
int handle_add(struct handle_table *table, const struct handle_entry *entry, uint32_t *handle);

/** Copies the entry of @handle to @entry (may be NULL). Returns false if there is none of that @kind. */
bool handle_find(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry);

/** True if @handle is that of @object: a device's domain, a key, or the address of memory, by @kind. */
bool handle_names(struct handle_table *table, enum handle_kind kind, uint32_t handle, const void *object);

/**
 * True once handle_imported() was called: until then each handle has one driver object, and there is no need to look whether
 * another one has taken its entry out.
 */
bool handle_imports_exist(void);
void handle_imported(void);

/** Overwrites the entry of @handle, which exists. */
void handle_update(struct handle_table *table, uint32_t handle, const struct handle_entry *entry);

/**
 * Takes the entry out. Returns 0 and a copy through @entry (may be NULL), -EINVAL if there is none of that
 * @kind, or -EBUSY and the entry's copy while it has references.
 */
int handle_remove(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry);

/** Adds a reference to a DM. Returns -EINVAL if it does not exist any more. */
int handle_get(struct handle_table *table, uint32_t handle);
void handle_put(struct handle_table *table, uint32_t handle);

#endif
