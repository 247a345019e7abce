/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures of keys, on the driver's side: the attributes of mlx5dv_wr_set_mkey_sig_block(3), the two PSVs and,
 * in profile connectx, the error that mlx5dv_mkey_check(3) reports. In profile man the device keeps the error
 * (hca_mkey_take_error()).
 *
 * A struct key_signature is created and freed with its user_mkey. Its attributes are under the lock of the key's
 * attributes (verbs/object/objects.h), the recorded error under that of the context's table, since any thread may poll.
 * error_count and rearm are atomic.
 */
#ifndef SOFTHCA_VERBS_MEMORY_SIGNATURE_H
#define SOFTHCA_VERBS_MEMORY_SIGNATURE_H

#include "verbs/object/objects.h"

enum signature_kind { SIGNATURE_NONE, SIGNATURE_T10DIF, SIGNATURE_CRC };

/* Copy of struct mlx5dv_sig_block_domain and of its members. */
struct key_domain {
	enum signature_kind kind;
	enum mlx5dv_block_size block_size;
	union {
		struct mlx5dv_sig_t10dif dif;
		struct mlx5dv_sig_crc crc; /* seed: truncated to the width of the CRC */
	};
};

/* Contents of a SIG_ERR CQE (mlx5-formats 3.5). */
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
	uint32_t memory_psv, wire_psv;
	struct key_domain memory, wire;
	uint32_t flags; /* MLX5DV_SIG_BLOCK_ATTR_FLAG_* */
	uint8_t check_mask, copy_mask;

	uint32_t index;
	struct user_mkey *next; /* in a list of signature_table */
	bool error_exists;      /* not yet returned by mlx5dv_mkey_check(3) */
	struct key_error error;
	uint32_t error_count; /* 1 plus the errors polled */
	/* the next UMR of the key must send the error count, which re-enables error reports */
	bool rearm;
};

void signature_table_init(struct signature_table *table);
void signature_table_destroy(struct signature_table *table);

/**
 * Creates the signature of @mkey after its key: two PSVs, memory first, and its place in the context's table. Returns 0
 * or -ENOMEM.
 */
int key_signature_create(struct user_mkey *mkey);
/** Returns 0, or -errno with the key unchanged. */
int key_signature_destroy(struct user_mkey *mkey);

/** Returns the key with @index if it has a signature, otherwise NULL. The table's lock is held. */
struct user_mkey *signature_find(struct user_context *context, uint32_t index);

/**
 * Records @error, found while polling, for mlx5dv_mkey_check(3). Returns false if no key with a signature has @index.
 * Takes the table's lock. Any thread.
 */
bool signature_record_error(struct user_context *context, uint32_t index, const struct key_error *error);

/**
 * Forgets the attributes of the key @rkey, for which @qp posts a local invalidation (profile man): the device will
 * clear them, and the next configuration must not write them again.
 */
void block_state_forget(struct user_qp *qp, uint32_t rkey);

#endif
