/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature errors on their way to those who want to know: the key, which keeps the first one for mlx5dv_mkey_check(3)
 * (profile man), and completion queues (mlx5-formats 3.5), those of profile connectx and those whose rings were given away.
 */
#ifndef SOFTHCA_MKEY_SIGNATURE_REPORT_H
#define SOFTHCA_MKEY_SIGNATURE_REPORT_H

#include "mkey/stage.h"

enum signature_syndrome {
	SYNDROME_REF_TAG = 0x0800,
	SYNDROME_APP_TAG = 0x1000,
	SYNDROME_GUARD = 0x2000,
};

/* A bad block. */
struct signature_error {
	struct mkey *holder;
	uint32_t key;      /* number */
	uint16_t syndrome; /* exactly one of enum signature_syndrome */
	bool memory;       /* the field was in memory, else on the wire */
	bool transaction;  /* of a transaction signature, else of a block */
	uint64_t expected; /* computed and configured; numbers as in block/setup.h */
	uint64_t found;    /* in the stream */
	uint64_t offset;   /* of the last byte of the block and its field, in its domain */
	uint64_t block;    /* its number */
};

/*
 * Embedded by whoever hears of errors. Called under whatever locks the transfer holds, for every bad block; of profile
 * connectx only for those that are told: none after the first until a UMR arms the key (mlx5-formats 6, point 7).
 */
struct signature_observer {
	void (*report)(struct signature_observer *observer, const struct signature_error *error);
};

/**
 * Block @number of the input is bad in the bytes of @difference: the key keeps it if it has none, and the observer of the
 * access hears of it.
 */
void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found);

#endif
