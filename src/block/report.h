/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature errors on their way to a completion queue (mlx5-formats 3.5). */
#ifndef SOFTHCA_BLOCK_REPORT_H
#define SOFTHCA_BLOCK_REPORT_H

#include "block/stage.h"

enum signature_syndrome {
	SYNDROME_REF_TAG = 0x0800,
	SYNDROME_APP_TAG = 0x1000,
	SYNDROME_GUARD = 0x2000,
};

/* A bad block. */
struct signature_error {
	uint32_t key;      /* number */
	uint16_t syndrome; /* exactly one of enum signature_syndrome */
	bool memory;       /* the field was in memory, else on the wire */
	uint64_t expected; /* computed and configured; numbers as in block/setup.h */
	uint64_t found;    /* in the stream */
	uint64_t offset;   /* of the last byte of the block and its field, in its domain */
	uint64_t block;    /* its number */
};

/* Where errors go: embedded by whoever takes them. Called under whatever locks the transfer holds. */
struct signature_observer {
	void (*report)(struct signature_observer *observer, const struct signature_error *error);
};

/**
 * Block @number of the input is bad in the bytes of @difference. The first error of a key is passed on; later ones are
 * not until a UMR arms the key again (mlx5dv_mkey_check(3), mlx5-formats 6, points 6 and 7).
 */
void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found);

#endif
