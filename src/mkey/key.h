/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys. `number = index << 8 | tag`; lkey and rkey of an object are the same number.
 *
 * A key is a fixed object under its index; all that a request may depend on (tag, free or live, domain, rights, range,
 * translation) is a mapping, immutable once published and exchanged as a whole by registration, UMR, bind, invalidation.
 * So a transfer sees a key either before or after a change, never in between, without a lock; and what it sees stays
 * valid until its epoch section ends (core/epoch.h).
 *
 * An indirect key owns two mappings and alternates between them: configuring it costs no allocation unless another
 * thread may still read the mapping before last; then one more is allocated, and freed once it is no longer needed.
 *
 * Locks: mkey.lock covers the exchange (UMRs of several QPs on one key). Readers take none.
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

/* How an indirect mapping orders its entries. */
enum layout_form {
	LAYOUT_NONE,   /* no translation: every access is out of range */
	LAYOUT_LIST,   /* entries one after the other */
	LAYOUT_REPEAT, /* entries in turn, `repeat` times, each `stride` further on (mlx5-formats 1.10) */
};

struct layout_entry {
	uint64_t address; /* in the space of `key` */
	uint64_t bytes;
	uint64_t before; /* bytes of the layout (of one repetition) in front of this entry */
	uint32_t stride; /* LAYOUT_REPEAT */
	uint32_t key;
	uint64_t serial; /* of the MR a window was bound to; 0: any key of that number */
};

struct mapping {
	struct mapping *older; /* in mkey.retired */
	uint64_t retired;      /* epoch stamp: may be written or freed once it has passed */
	uint32_t number;       /* with its tag */
	bool free;
	uint8_t kind;   /* enum key_kind */
	uint8_t rights; /* enum key_rights */
	/* The same of a region of plain memory that any QP may use, else none: what most requests need to know at once. */
	uint8_t plain_rights;
	bool bind_allowed; /* IBV_ACCESS_MW_BIND: an attribute of verbs, not of the mkey context (mlx5-formats 4.12) */
	uint32_t pd;
	uint32_t qpn;       /* KEY_QPN_ANY, or the only QP that may use it (type 2 window) */
	uint64_t qp_serial; /* of that QP: a later QP of the same number is another one; 0: not compared */
	uint64_t start, length;
	uint8_t *base;   /* direct kinds: memory of byte 0 */
	uint64_t serial; /* of the key: distinguishes a key from a later one of the same number */
	/* indirect kinds */
	struct block_setup *blocks; /* of a key that can have a signature or a cipher, else NULL; behind the entries */
	bool staged;                /* and has one: requests pass a block stage, in bytes of the wire (mkey/stage.h) */
	bool needs_cipher;          /* created for a cipher: unusable without (mlx5dv_wr_set_mkey_crypto(3)) */
	uint64_t version;           /* counts the changes */
	uint64_t explained;         /* the latest explanation when it was published: what concerns it comes later */
	uint8_t form;               /* enum layout_form */
	uint8_t log_entity; /* entries of a list translate 2^this bytes each, whatever they say themselves; 0: what they say */
	bool gaps; /* of LAYOUT_LIST: entries had some between them, so their numbers are not those of the UMR */
	uint32_t count;
	uint32_t repeat;
	uint64_t period; /* bytes of one repetition, or of the whole list */
	struct layout_entry entries[];
};

/* The place for a signature error. */
enum key_error_state {
	KEY_ERROR_NONE,
	KEY_ERROR_CHANGES, /* a thread is writing or taking it */
	KEY_ERROR_KEPT,    /* found, and nobody has asked for it */
};

struct mkey {
	struct mapping *mapping; /* atomic: the published one; never NULL after creation */
	struct mapping *retired; /* earlier ones, newest first */
	struct hca *hca;
	struct hca_pd *pd; /* which the key keeps; NULL for a null region, which does not (ibv_alloc_null_mr(3)) */
	uint32_t index;
	uint32_t capacity; /* translation entries; 0 for direct keys */
	uint8_t bsf_octowords;
	uint8_t error_state;          /* atomic; enum key_error_state */
	bool error_reported;          /* atomic; a CQE told of one, and the key was not armed since */
	struct mlx5dv_mkey_err error; /* belongs to whoever made error_state KEY_ERROR_CHANGES */
	struct block_reached reached; /* by the latest reception */
	bool has_reached;             /* and that counts; atomic, read without the lock */
	bool umr_enabled;
	bool remote_invalidate;
	bool clears; /* an invalidation clears what it is configured with (mlx5dv_wr_mkey_configure(3)), if the profile says so */
	uint32_t windows; /* atomic; windows bound to this region */
	bool update_tag;  /* a UMR names it by its index alone */
	bool granted;     /* atomic; others may reach its memory without asking (hca/grants.h) */
};

/** The lock of changes of @key, which others share: a thread that holds it takes that of no other key. Any thread. */
struct queue_lock *mkey_lock(const struct mkey *key);

/** The published mapping. Inside an epoch section, or with the key's changes otherwise excluded. */
SPECIALISED const struct mapping *mkey_mapping(const struct mkey *key)
{
	return __atomic_load_n(&key->mapping, __ATOMIC_ACQUIRE);
}

/** The key under @number's index, whatever its tag, or NULL. Inside an epoch section. */
SPECIALISED struct mkey *mkey_find(struct hca *hca, uint32_t number)
{
	return id_table_find(&hca->keys, KEY_INDEX(number));
}

static inline bool mapping_is_direct(const struct mapping *map)
{
	return map->kind < KEY_INDIRECT;
}

/** True if requests through @map pass a block stage. */
static inline bool mapping_is_staged(const struct mapping *map)
{
	return __builtin_expect(map->staged, 0);
}

/** Bytes that the entries of an indirect mapping translate. */
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

/** True if [@address, +@length) lies in the range of @map. */
SPECIALISED bool mapping_covers(const struct mapping *map, uint64_t address, uint64_t length)
{
	uint64_t offset = address - map->start;

	return address >= map->start && offset <= map->length && length <= map->length - offset;
}

/** Memory of @address inside a direct mapping; by integers, since an implicit region begins at address 0. */
SPECIALISED uint8_t *mapping_memory(const struct mapping *map, uint64_t address)
{
	return (uint8_t *)((uintptr_t)map->base + (address - map->start));
}

/* As a tag: one that the index did not have lately, so that a number that outlived its region does not reach the next one. */
#define KEY_TAG_OTHER (-1)

/**
 * Creates a key of @capacity translation entries, and of room for a block setup if @blocks, with the mapping @initial
 * (number, serial are set here). @tag: of its number, or KEY_TAG_OTHER.
 */
int mkey_new(struct hca_pd *pd, const struct mapping *initial, uint32_t capacity, bool blocks, int tag,
	     struct mkey **key);
/** Makes the key unreachable, waits for running transfers, frees it. */
void mkey_delete(struct mkey *key);

/**
 * Begins a change: locks the key and returns a writable copy of its mapping (entries included), or NULL without
 * memory (unlocked). Ends with mkey_publish or mkey_discard.
 */
struct mapping *mkey_edit(struct mkey *key);
/** Returns the epoch stamp of the mapping before (core/epoch.h). */
uint64_t mkey_publish(struct mkey *key, struct mapping *next);
void mkey_discard(struct mkey *key, struct mapping *next);

/**
 * Keeps @error, unless the key keeps one already (mlx5dv_mkey_check(3): "the first of these errors is reported to the MKEY
 * and kept there"). Returns true if it does. Any thread, inside an epoch section.
 */
bool mkey_keep_error(struct mkey *key, const struct mlx5dv_mkey_err *error);

/** True if a CQE is to tell of an error: the first since the key was armed (mlx5-formats 6, points 7 and 8). */
static inline bool mkey_claim_error_report(struct mkey *key)
{
	return !__atomic_load_n(&key->error_reported, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&key->error_reported, true, __ATOMIC_RELAXED);
}

/** Arms the key: the next error is told by a CQE. */
static inline void mkey_arm_errors(struct mkey *key)
{
	__atomic_store_n(&key->error_reported, false, __ATOMIC_RELAXED);
}

#endif
