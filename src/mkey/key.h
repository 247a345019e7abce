/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys (DESIGN.md). `number = index << 8 | tag`; lkey and rkey of an object are the same number.
 *
 * Everything that a request may depend on is in the key's mapping, which is immutable once published and valid until the
 * reader's epoch section ends (core/epoch.h). An indirect key alternates between two mappings, so configuring it
 * allocates only if a thread may still be reading the older one.
 *
 * Locks: mkey_lock() covers replacing the mapping. Readers take no lock.
 */
#ifndef SOFTHCA_MKEY_KEY_H
#define SOFTHCA_MKEY_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>

#include "core/compiler.h"
#include "mkey/block_progress.h"
#include "block/setup.h"
#include "format/key_kinds.h"
#include "explain/explain.h"
#include "hca/hca.h"
#include "mkey/commands.h"

#define KEY_QPN_ANY 0xffffffu
#define KEY_INDEX(number) ((number) >> 8)

enum layout_form {
	LAYOUT_NONE,   /* every access is out of range */
	LAYOUT_LIST,   /* entries one after the other */
	LAYOUT_REPEAT, /* all entries in turn, `repeat` times; each time `stride` bytes further (mlx5-formats 1.10) */
};

struct layout_entry {
	uint64_t address; /* in the space of `key` */
	uint64_t bytes;
	uint64_t before; /* bytes of the layout (of one repetition) before this entry */
	uint32_t stride; /* LAYOUT_REPEAT */
	uint32_t key;
	uint64_t serial; /* of the MR that the window was bound to; 0: any key with the number `key` */
};

struct mapping {
	struct mapping *older; /* in mkey.retired */
	uint64_t retired;      /* epoch stamp; once passed, the mapping may be written or freed */
	uint32_t number;       /* tag included */
	bool free;
	uint8_t kind;   /* enum key_kind */
	uint8_t rights; /* enum key_rights */
	/* `rights` of a live region of plain memory that any QP may use, otherwise 0. One test serves most requests. */
	uint8_t plain_rights;
	bool bind_allowed; /* IBV_ACCESS_MW_BIND, which the mkey context does not have (mlx5-formats 4.12) */
	uint32_t pd;
	uint32_t qpn;       /* KEY_QPN_ANY, or the only QP that may use the key */
	uint64_t qp_serial; /* serial of that QP, to detect a later QP with the same number; 0: not compared */
	uint64_t start, length;
	uint8_t *base;   /* direct kinds: memory of byte 0 */
	uint64_t serial; /* of the key, to detect a later one with the same number */
	/* indirect kinds */
	struct block_setup *blocks; /* stored after the entries; NULL if the key cannot have a signature or a cipher */
	bool staged;                /* requests pass a block stage, in wire bytes (mkey/stage.h) */
	bool needs_cipher;          /* unusable without a cipher (mlx5dv_wr_set_mkey_crypto(3)) */
	uint64_t version;           /* number of changes */
	uint64_t explained; /* serial of the latest explanation at publication; later ones may concern this mapping */
	uint8_t form;       /* enum layout_form */
	uint8_t log_entity; /* each list entry translates 2^log_entity bytes; 0: its byte count */
	bool gaps; /* LAYOUT_LIST: the UMR had gaps between entries, so its entry numbers differ from those here */
	uint32_t count;
	uint32_t repeat;
	uint64_t period; /* bytes of one repetition, or of the whole list */
	struct layout_entry entries[];
};

enum key_error_state {
	KEY_ERROR_NONE,
	KEY_ERROR_CHANGES, /* being stored or fetched */
	KEY_ERROR_KEPT,    /* stored, not fetched yet */
};

struct mkey {
	struct mapping *mapping; /* atomic: the published one; NULL only during creation */
	struct mapping *retired; /* earlier ones, newest first */
	struct hca *hca;
	struct hca_pd *pd; /* referenced; NULL for a null region, which keeps no reference (ibv_alloc_null_mr(3)) */
	uint32_t index;
	uint32_t capacity; /* room for translation entries; 0 for direct keys */
	uint8_t bsf_octowords;
	uint8_t error_state;          /* atomic; enum key_error_state */
	bool error_reported;          /* atomic; a CQE reported an error since the key was armed */
	struct mlx5dv_mkey_err error; /* owned by the thread that set error_state to KEY_ERROR_CHANGES */
	struct block_reached reached; /* end of the latest reception */
	bool has_reached;             /* atomic, read without the lock */
	struct hca_cut_block
		cut;          /* of the latest transfer, with hca.notes_block_ends; block 0: it ended with a block */
	uint64_t cut_version; /* version of its mapping */
	bool umr_enabled;
	bool remote_invalidate;
	bool clears; /* invalidation clears the configuration (mlx5dv_wr_mkey_configure(3)), except in profile connectx */
	uint32_t windows; /* atomic; bound to this region */
	bool update_tag;  /* a UMR may name the live key with any tag */
	bool granted;     /* atomic; other processes may access its memory directly (hca/grants.h) */
};

/** Returns the lock for changes of @key. Keys share locks: never take two. Any thread. */
struct queue_lock *mkey_lock(const struct mkey *key);

/** Returns the published mapping. Call inside an epoch section, or while @key cannot change. */
static inline SPECIALISED const struct mapping *mkey_mapping(const struct mkey *key)
{
	return __atomic_load_n(&key->mapping, __ATOMIC_ACQUIRE);
}

/** Returns the key with the index of @number, whatever its tag, or NULL. Call inside an epoch section. */
static inline SPECIALISED struct mkey *mkey_find(struct hca *hca, uint32_t number)
{
	return id_table_find(&hca->keys, KEY_INDEX(number));
}

static inline bool mapping_is_direct(const struct mapping *map)
{
	return map->kind < KEY_INDIRECT;
}

static inline bool mapping_is_staged(const struct mapping *map)
{
	return __builtin_expect(map->staged, 0);
}

static inline uint64_t mapping_translated(const struct mapping *map)
{
	switch (map->form) {
	case LAYOUT_LIST:
		return map->period;
	case LAYOUT_REPEAT:
		return map->period * map->repeat;
	default:
		return 0;
	}
}

/** Returns true if [@address, +@length) lies in the range of @map. */
static inline SPECIALISED bool mapping_covers(const struct mapping *map, uint64_t address, uint64_t length)
{
	uint64_t offset = address - map->start;

	return address >= map->start && offset <= map->length && length <= map->length - offset;
}

/** Returns the memory of @address in a direct mapping. Uses integers, as an implicit region begins at address 0. */
static inline SPECIALISED uint8_t *mapping_memory(const struct mapping *map, uint64_t address)
{
	return (uint8_t *)((uintptr_t)map->base + (address - map->start));
}

/* Chooses a tag that the index did not have recently, so that a stale number does not match the next region. */
#define KEY_TAG_OTHER (-1)

/**
 * Creates a key with room for @capacity translation entries, and a block setup if @blocks, from @initial; sets number,
 * serial and pd. @tag: of the number, or KEY_TAG_OTHER. Returns 0 or -ENOMEM.
 */
int mkey_new(struct hca_pd *pd, const struct mapping *initial, uint32_t capacity, bool blocks, int tag,
	     struct mkey **key);
/** Makes the key unreachable, waits for running transfers, and frees it. */
void mkey_delete(struct mkey *key);

/**
 * Locks the key and returns a writable copy of its mapping, entries included. Returns NULL, without the lock, if memory
 * is short. mkey_publish() or mkey_discard() ends the change and unlocks.
 */
struct mapping *mkey_edit(struct mkey *key);
/** Returns the epoch stamp after which no thread reads the previous mapping (core/epoch.h). */
uint64_t mkey_publish(struct mkey *key, struct mapping *next);
void mkey_discard(struct mkey *key, struct mapping *next);

/**
 * Stores @error unless the key holds one (mlx5dv_mkey_check(3)). Returns true if stored. Any thread, inside an epoch
 * section.
 */
bool mkey_keep_error(struct mkey *key, const struct mlx5dv_mkey_err *error);

/**
 * Returns true if a CQE must report this error: the first one since the key was armed (mlx5-formats 6, points 7 and 8).
 */
static inline bool mkey_claim_error_report(struct mkey *key)
{
	return !__atomic_load_n(&key->error_reported, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&key->error_reported, true, __ATOMIC_RELAXED);
}

/** Lets a CQE report the next error. */
static inline void mkey_arm_errors(struct mkey *key)
{
	__atomic_store_n(&key->error_reported, false, __ATOMIC_RELAXED);
}

#endif
