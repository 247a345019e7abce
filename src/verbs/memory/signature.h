/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures of keys, the driver's side: what mlx5dv_wr_set_mkey_sig_block(3) set, the two PSVs, and, of profile
 * connectx, the error that mlx5dv_mkey_check(3) reports. In profile man the device keeps it (hca_mkey_take_error()).
 *
 * A struct key_signature belongs to its user_mkey: made and freed with it. Its attributes are covered as those of the
 * key (verbs/object/objects.h); the recorded error by the lock of the context's table, since any thread may poll; error_count
 * and rearm are atomic.
 */
#ifndef SOFTHCA_VERBS_MEMORY_SIGNATURE_H
#define SOFTHCA_VERBS_MEMORY_SIGNATURE_H

#include "verbs/object/objects.h"

enum signature_kind { SIGNATURE_NONE, SIGNATURE_T10DIF, SIGNATURE_CRC };

/* A copy of struct mlx5dv_sig_block_domain and what it points to. */
struct key_domain {
	enum signature_kind kind;
	enum mlx5dv_block_size block_size;
	union {
		struct mlx5dv_sig_t10dif dif;
		struct mlx5dv_sig_crc crc; /* seed: cut to the width of the CRC */
	};
};

/* A SIG_ERR CQE (mlx5-formats 3.5). */
struct key_error {
	uint16_t syndrome; /* SYNDROME_* */
	uint8_t type;      /* 0: block signature */
	uint8_t domain;    /* DOMAIN_* */
	uint64_t expected, actual;
	uint64_t offset;
};

enum {
	SYNDROME_REF_TAG = 0x0800,
	SYNDROME_APP_TAG = 0x1000,
	SYNDROME_GUARD = 0x2000,

	DOMAIN_WIRE = 0,
	DOMAIN_MEMORY = 1,
};

struct key_signature {
	uint32_t memory_psv, wire_psv; /* indices */
	struct key_domain memory, wire;
	uint32_t flags; /* MLX5DV_SIG_BLOCK_ATTR_FLAG_* */
	uint8_t check_mask, copy_mask;

	uint32_t index;         /* of the key */
	struct user_mkey *next; /* in a list of signature_table */
	bool error_exists;      /* polled, and not yet asked for */
	struct key_error error;
	uint32_t error_count; /* errors polled, and 1 */
	bool rearm;           /* the next UMR of the key tells the device the error count: it reports errors again */
};

void signature_table_init(struct signature_table *table);
void signature_table_destroy(struct signature_table *table);

/**
 * Makes the signature of @mkey, whose key exists: two PSVs, memory first, and its place in the table of the context.
 * Returns 0 or -ENOMEM.
 */
int key_signature_create(struct user_mkey *mkey);
/** Undoes that. Returns 0, or -errno and then the key is as it was. */
int key_signature_destroy(struct user_mkey *mkey);

/** The key of @context with @index among those with a signature, or NULL. The caller holds the table's lock. */
struct user_mkey *signature_find(struct user_context *context, uint32_t index);

/**
 * Records @error, which polling found, in the key with @index; mlx5dv_mkey_check(3) returns it. Returns false if no key with a
 * signature has this index. Takes the table's lock. Any thread.
 */
bool signature_record_error(struct user_context *context, uint32_t index, const struct key_error *error);

/**
 * A local invalidation of @rkey is being posted on @qp: forgets the attributes of the key, which the device will clear,
 * so that the next configuration does not write them again (profile man).
 */
void block_state_forget(struct user_qp *qp, uint32_t rkey);

#endif
