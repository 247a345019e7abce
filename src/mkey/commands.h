/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of keys, see process/commands.h. */
#ifndef SOFTHCA_MKEY_COMMANDS_H
#define SOFTHCA_MKEY_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct hca;
struct hca_pd;
struct mkey;
struct refusal;

enum mr_kind {
	MR_MEMORY,
	MR_ON_DEMAND,     /* explicit on-demand: pages are checked at access, not at registration */
	MR_IMPLICIT,      /* implicit on-demand: the whole address space */
	MR_DEVICE_MEMORY, /* ibv_alloc_dm */
	MR_NULL,          /* reads as zeros, discards writes */
};

struct hca_mr_attr {
	enum mr_kind kind;
	void *addr;     /* memory of byte 0; host address for MR_DEVICE_MEMORY; NULL for MR_IMPLICIT and MR_NULL */
	uint64_t start; /* address of byte 0 in requests (iova) */
	uint64_t length;
	unsigned int access; /* enum ibv_access_flags; optional bits are ignored */
};

/**
 * Creates a direct key (lkey == rkey). The driver has checked the access flags. Pre-faults MR_MEMORY. Returns 0, -EFAULT
 * for memory that is not mapped or, with write access, not writable, or -ENOMEM.
 */
int hca_mr_register(struct hca_pd *pd, const struct hca_mr_attr *attr, struct mkey **key);
/**
 * Changes translation, PD and access of a direct key as @flags (enum ibv_rereg_mr_flags) select. The key keeps its
 * number. On failure it is unchanged.
 */
int hca_mr_reregister(struct mkey *key, int flags, struct hca_pd *pd, const struct hca_mr_attr *attr);
/** Destroys a key. Returns after the last running transfer through it. Windows bound to it become unusable. */
int hca_mr_deregister(struct mkey *key);

/**
 * Checks [@address, +@length) of an on-demand region of @pd for ibv_advise_mr(3). @populate: makes its pages present,
 * and writable with @write. Returns 0, -ENOENT if @lkey is not an on-demand region, -EINVAL for a window or an indirect
 * key, -EPERM for another domain, or without local write if @write, -EFAULT for a range outside the region or not
 * mapped.
 */
int hca_mr_prefetch(struct hca_pd *pd, uint32_t lkey, uint64_t address, uint64_t length, bool write, bool populate);

/** Creates a window key, free until it is bound. */
int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct mkey **key);
int hca_mw_dealloc(struct mkey *key);

/* Attributes that both commands and UMRs may set. */
struct hca_mkey_state {
	bool free;
	uint8_t rights; /* enum key_rights */
	uint8_t tag;    /* lowest byte of the number */
	uint32_t qpn;   /* the only QP that may use the key; 0xffffff: any */
	uint64_t start, length;
	bool remote_invalidate; /* en_rinval */
};

struct hca_mkey_attr {
	uint16_t max_entries;   /* capacity in 16-byte translation entries, already rounded up to a multiple of 4 */
	uint8_t bsf_octowords;  /* capacity for block setup: 0, 4 or 8 */
	bool cipher;            /* unusable until a cipher is configured */
	bool remote_invalidate; /* en_rinval */
	bool update_tag;        /* a UMR may name the live key with another tag */
};

/** Creates an indirect key with tag 0, free until a UMR configures it (mlx5-formats 4.3). */
int hca_mkey_create(struct hca_pd *pd, const struct hca_mkey_attr *attr, struct mkey **key);

/* An indirect key created by a DEVX command. */
struct hca_mkey_layout {
	struct hca_mkey_attr attr;
	struct hca_mkey_state state;
	bool fixed;             /* no UMR may change the key */
	uint8_t log_entity;     /* KSM: each entry translates 2^log_entity bytes; 0: KLM, entries have byte counts */
	const uint8_t *entries; /* as in a UMR WQE (mlx5-formats 1.9) */
	uint32_t entry_count;   /* at most attr.max_entries; 0: no translation yet */
};

/** Creates a key. Returns 0, -ENOMEM with @why empty, or -EACCES with @why if the entries do not describe a layout. */
int hca_mkey_create_layout(struct hca_pd *pd, const struct hca_mkey_layout *layout, struct mkey **key,
			   struct refusal *why);
/**
 * Creates a key of the memory at @base, which no UMR may change. Returns 0, -EFAULT if the memory is not mapped, or not
 * writable though the rights need it, or -ENOMEM.
 */
int hca_mkey_create_memory(struct hca_pd *pd, const struct hca_mkey_state *state, void *base, struct mkey **key);
int hca_mkey_destroy(struct mkey *key);
/** Returns the current attributes. Any thread. */
void hca_mkey_query(struct mkey *key, struct hca_mkey_state *state);

/**
 * Fetches and clears the key's signature error, the first since the previous call (profile man, mlx5dv_mkey_check(3)).
 * err_type: MLX5DV_MKEY_NO_ERR if there is none.
 */
void hca_mkey_take_error(struct mkey *key, struct mlx5dv_mkey_err *error);

/* A block with a signature of which only the beginning was transferred. Wire bytes. */
struct hca_cut_block {
	uint32_t bytes, block; /* number transferred; length with signature */
};

/**
 * Returns true if the latest transfer through the present configuration ended inside a block whose signature is checked
 * or generated. Requires hca.notes_block_ends. Any thread.
 */
bool hca_mkey_cut_block(struct mkey *key, struct hca_cut_block *cut);

/**
 * Creates a PSV, the state of a signature domain between transfers (mlx5-formats 1.11, 1.13). @index has 24 bits.
 * Returns 0 or -ENOMEM.
 */
int hca_psv_create(struct hca_pd *pd, uint32_t *index);
/** Destroys a PSV. Returns 0 or -ENOENT. Keys can no longer be configured with it. */
int hca_psv_destroy(struct hca *hca, uint32_t index);

/** Returns the number: index << 8 | tag. The tag of a window changes with each bind. */
uint32_t mkey_number(const struct mkey *key);

#endif
