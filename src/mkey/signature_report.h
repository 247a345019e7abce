/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reporting of signature errors: to the key, which stores the first one for mlx5dv_mkey_check(3) (profile man), and to
 * completion queues (mlx5-formats 3.5) in profile connectx, or if the program reads the CQ's ring itself.
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
	bool memory;       /* the field was in memory, otherwise on the wire */
	bool transaction;  /* error of a transaction signature, otherwise of a block */
	uint64_t expected; /* field computed from data and configuration; number as in block/setup.h */
	uint64_t found;    /* field in the stream */
	uint64_t offset;   /* offset in its domain of the last byte of the block and its field */
	uint64_t block;    /* block number */
};

/*
 * Receiver of signature errors; embedded in a structure of the receiver. Called for every bad block, under the locks
 * that the transfer holds; in profile connectx only for errors that a CQE reports: the first one after a UMR has armed
 * the key (mlx5-formats 6, point 7).
 */
struct signature_observer {
	void (*report)(struct signature_observer *observer, const struct signature_error *error);
};

/**
 * Reports that input block @number is bad in the bytes of @difference: stores and explains the error if it is the key's first,
 * and calls the observer of the access.
 */
void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found);

#endif
