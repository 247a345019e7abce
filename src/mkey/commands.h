/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of keys: regions, windows, indirect keys, PSVs; see process/commands.h. */
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
	MR_MEMORY,        /* plain virtual memory of this process */
	MR_ON_DEMAND,     /* explicit on-demand: pages are checked at access, not at registration */
	MR_IMPLICIT,      /* implicit on-demand: the whole address space */
	MR_DEVICE_MEMORY, /* memory of ibv_alloc_dm */
	MR_NULL,          /* ibv_alloc_null_mr: reads give zeros, writes are discarded */
};

struct hca_mr_attr {
	enum mr_kind kind;
	void *addr;          /* memory of byte 0; for MR_DEVICE_MEMORY its host address; NULL for IMPLICIT and NULL */
	uint64_t start;      /* address of byte 0 as requests name it (iova; 0 for zero-based keys) */
	uint64_t length;     /* bytes */
	unsigned int access; /* enum ibv_access_flags; optional bits are ignored by the device */
};

/**
 * Makes a direct key (lkey == rkey). The driver has checked the access flags; the device pre-faults MR_MEMORY
 * (-EFAULT for memory that is not mapped or, with write access, not writable).
 */
int hca_mr_register(struct hca_pd *pd, const struct hca_mr_attr *attr, struct mkey **key);
/**
 * Changes a direct key in place: what @flags (enum ibv_rereg_mr_flags) selects: translation (addr, start, length),
 * PD (@pd), access. The key's number stays. On failure the key is unchanged.
 */
int hca_mr_reregister(struct mkey *key, int flags, struct hca_pd *pd, const struct hca_mr_attr *attr);
/** Destroys a key; returns after the last running transfer through it ended. Windows over it become unusable. */
int hca_mr_deregister(struct mkey *key);

/**
 * Prefetch of ibv_advise_mr(3) in an on-demand region of @pd: checks [@address, +@length) and, with @populate, makes its
 * pages present (writable ones with @write). Returns 0, -ENOENT for no on-demand region under @lkey, -EINVAL for a
 * window or an indirect key, -EPERM for another domain or a region without local write, -EFAULT for a range outside of
 * the region or of mapped memory.
 */
int hca_mr_prefetch(struct hca_pd *pd, uint32_t lkey, uint64_t address, uint64_t length, bool write, bool populate);

/** Window key: free until bound. @type: type 1 or 2. */
int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct mkey **key);
int hca_mw_dealloc(struct mkey *key);

/* What a command may say of a key from the begin on, as a UMR does later. */
struct hca_mkey_state {
	bool free;
	uint8_t rights; /* enum key_rights */
	uint8_t tag;    /* lowest byte of its number */
	uint32_t qpn;   /* that may use it, or 0xffffff: any */
	uint64_t start, length;
	bool remote_invalidate; /* en_rinval */
};

struct hca_mkey_attr {
	uint16_t max_entries;   /* capacity in 16-byte translation entries, already rounded up to a multiple of 4 */
	uint8_t bsf_octowords;  /* capacity for block setup: 0, 4 or 8 */
	bool cipher;            /* made for a cipher: cannot be used before it is configured with one */
	bool remote_invalidate; /* en_rinval */
	bool update_tag;        /* a UMR may name the live key with a tag that differs from the current one */
};

/** Indirect key, free until a UMR configures it, tag 0 (mlx5-formats 4.3). */
int hca_mkey_create(struct hca_pd *pd, const struct hca_mkey_attr *attr, struct mkey **key);

/* An indirect key by command. */
struct hca_mkey_layout {
	struct hca_mkey_attr attr;
	struct hca_mkey_state state;
	bool fixed;             /* no UMR may change it */
	uint8_t log_entity;     /* KSM: each entry translates 2^this bytes; 0: KLM, what it says itself */
	const uint8_t *entries; /* as in a UMR WQE (mlx5-formats 1.9) */
	uint32_t entry_count;   /* no more than attr.max_entries; 0: no translation yet */
};

/** Returns 0, -ENOMEM with @why empty, or -EACCES with @why: entries that do not describe a layout. */
int hca_mkey_create_layout(struct hca_pd *pd, const struct hca_mkey_layout *layout, struct mkey **key,
			   struct refusal *why);
/** A key of the memory at @base by command, which no UMR may change. -EFAULT: it is not there in the way that the rights need. */
int hca_mkey_create_memory(struct hca_pd *pd, const struct hca_mkey_state *state, void *base, struct mkey **key);
int hca_mkey_destroy(struct mkey *key);
/** Fills @state with the attributes that @key has now: those of its creation, or of the last UMR. Any thread. */
void hca_mkey_query(struct mkey *key, struct hca_mkey_state *state);

/**
 * mlx5dv_mkey_check(3), profile man: takes the signature error that the key keeps, the first that was found since the call
 * before, as the page describes it. Its err_type is MLX5DV_MKEY_NO_ERR if there is none.
 */
void hca_mkey_take_error(struct mkey *key, struct mlx5dv_mkey_err *error);

/**
 * A PSV, which a signature domain of a key names (mlx5-formats 1.11, 1.13): the state of its signature between
 * transfers. @index has 24 bits. Returns 0 or -ENOMEM.
 */
int hca_psv_create(struct hca_pd *pd, uint32_t *index);
/** Returns 0, -ENOENT. Keys that still name it can be used no longer with it. */
int hca_psv_destroy(struct hca *hca, uint32_t index);

/** Current key number: index << 8 | tag. For windows the tag changes with each bind. */
uint32_t mkey_number(const struct mkey *key);

#endif
