/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hash table that leads from a message to its id. Peers choose parts of the keys, so the hash is secret. The lock of
 * the manager covers it; it owns its buckets, not the entries.
 */
#ifndef SOFTHCA_CM_TABLE_H
#define SOFTHCA_CM_TABLE_H

#include <stdint.h>

enum cm_key_kind {
	CM_KEY_LOCAL,       /* own communication id, or request id made here */
	CM_KEY_REMOTE_ID,   /* CA GUID, GID and communication id of the peer: detects a repeated REQ */
	CM_KEY_REMOTE_QPN,  /* CA GUID, GID and QPN of the peer: detects a stale connection */
	CM_KEY_REMOTE_SIDR, /* request id and GID of the requesting side: detects a repeated SIDR_REQ */
};

struct cm_key {
	enum cm_key_kind kind;
	uint32_t number;
	uint64_t of[3]; /* GID, then CA GUID */
};

/* Embedded in an id, once per kind. */
struct cm_entry {
	struct cm_key key;
	struct cm_entry *next, **link; /* link NULL: not in a table */
};

struct cm_table {
	struct cm_entry **buckets;
	uint64_t size, count; /* size: a power of two */
	uint64_t secret;
};

/** Prepares an empty table. Returns 0 or -ENOMEM. */
int cm_table_init(struct cm_table *table, uint64_t secret);
void cm_table_free(struct cm_table *table);

/** Enters @entry, which is in no table. Never fails; without memory the table becomes slower. */
void cm_table_enter(struct cm_table *table, struct cm_entry *entry, const struct cm_key *key);
/** Removes @entry. */
void cm_table_remove(struct cm_table *table, struct cm_entry *entry);
/** Returns an entry under @key, or NULL. */
struct cm_entry *cm_table_find(const struct cm_table *table, const struct cm_key *key);

#endif
