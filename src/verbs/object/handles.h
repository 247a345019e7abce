/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles: the numbers that the kernel gives to objects of a real adapter. With them ibv_import_pd(3), ibv_import_mr(3)
 * and ibv_import_dm(3) create a second driver object for one device object. The table records which device objects
 * exist. A destroy call through any driver object removes the entry; the others can then only be unimported.
 *
 * Owned, through references, by the context that created it and its imports. Any thread may call.
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
	uint32_t references; /* of a DM: number of MRs over it */
	union {
		struct hca_pd *pd;
		struct mkey *key;
		void *dm;
		uint32_t next_free;
	};
	size_t length; /* for an MR or a DM */
	/* for an MR */
	uint64_t start;
	unsigned int access;
	enum mr_kind mr_kind;
	uint32_t dm_handle;
};

struct handle_table;

/** Creates an empty table with one reference. NULL without memory. */
struct handle_table *handle_table_new(void);
void handle_table_get(struct handle_table *table);
/** Block all changes around fork(2): the child must not get a table in the middle of one. */
void handle_table_freeze(struct handle_table *table);
void handle_table_thaw(struct handle_table *table);
/** Drops a reference. The last one frees the table, but not its objects. */
void handle_table_put(struct handle_table *table);

/** Copies @entry. Returns 0 and its number through @handle, or -ENOMEM. */
int handle_add(struct handle_table *table, const struct handle_entry *entry, uint32_t *handle);

/** Copies the entry of @handle to @entry (may be NULL). Returns false if @handle has no entry of @kind. */
bool handle_find(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry);

/**
 * Returns true if @handle is that of @object: by @kind, the device's domain, a key, or the address of device memory.
 */
bool handle_names(struct handle_table *table, enum handle_kind kind, uint32_t handle, const void *object);

/**
 * Returns true once handle_imported() was called. Until then no other driver object can have removed the entry of a
 * handle.
 */
bool handle_imports_exist(void);
void handle_imported(void);

/** Overwrites the entry of @handle, which exists. */
void handle_update(struct handle_table *table, uint32_t handle, const struct handle_entry *entry);

/**
 * Removes the entry. Returns 0 and a copy through @entry (may be NULL), -EINVAL if @handle has no entry of @kind, or
 * -EBUSY and a copy while it has references.
 */
int handle_remove(struct handle_table *table, enum handle_kind kind, uint32_t handle, struct handle_entry *entry);

/** Adds a reference to a DM. Returns 0, or -EINVAL if it is destroyed. */
int handle_get(struct handle_table *table, uint32_t handle);
void handle_put(struct handle_table *table, uint32_t handle);

#endif
