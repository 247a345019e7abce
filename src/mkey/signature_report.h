/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports signature errors to the key (profile man, mlx5dv_mkey_check(3)), and to completion queues (mlx5-formats 3.5).
 */
#ifndef SOFTHCA_MKEY_SIGNATURE_REPORT_H
#define SOFTHCA_MKEY_SIGNATURE_REPORT_H

#include "mkey/stage.h"

enum signature_syndrome {
	SYNDROME_REF_TAG = 0x0800,
	SYNDROME_APP_TAG = 0x1000,
	SYNDROME_GUARD = 0x2000,
};

struct signature_error {
	struct mkey *holder;
	uint32_t key;
	uint16_t syndrome; /* one of enum signature_syndrome */
	bool memory;       /* otherwise on the wire */
	bool transaction;  /* otherwise of a block */
	uint64_t expected; /* field computed from data and configuration; as in block/setup.h */
	uint64_t found;    /* field in the stream */
	uint64_t offset;   /* offset in its domain of the last byte of the block and its field */
	uint64_t block;
};

/*
 * Called for every bad block, under the locks of the transfer; in profile connectx only for the first one after a UMR
 * has armed the key (mlx5-formats 6, point 7).
 */
struct signature_observer {
	void (*report)(struct signature_observer *observer, const struct signature_error *error);
};

/** Reports that input block @number is bad in the bytes of @difference. */
void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found);

#endif
