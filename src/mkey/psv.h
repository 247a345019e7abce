/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSVs hold the state of a key's signature domains (mlx5-formats 1.11, 1.13). softhca keeps the state of block
 * signatures in the key (mkey/block_progress.h). So only a transaction signature uses its PSV, through which it
 * continues from one key to the next.
 *
 * The driver creates PSVs with hca_psv_create() and owns them. Look them up inside epoch sections. Lock: the device's
 * psv_lock, a leaf, covers all members except pd and index.
 */
#ifndef SOFTHCA_MKEY_PSV_H
#define SOFTHCA_MKEY_PSV_H

#include "hca/hca.h"

struct psv {
	struct hca_pd *pd;
	uint32_t index;
	uint64_t transient; /* format of SET_PSV: a running 32-bit CRC in the upper half */
	/*
	 * The key configuration that used the PSV last, and the initial value of its CRC: data that is read again must
	 * begin with the same value.
	 */
	uint64_t serial, version, start;
};

/** Returns PSV @index if it belongs to domain @pd, otherwise NULL. */
struct psv *psv_find(struct hca *hca, uint32_t index, uint32_t pd);

/** Sets the state of @psv to @transient (SET_PSV). */
void psv_set(struct psv *psv, uint64_t transient);

/** Returns the initial running CRC for configuration @version of the key with @serial. Repeated calls return the same value. */
uint32_t psv_begin(struct psv *psv, uint64_t serial, uint64_t version);

/** Stores the running CRC after all data of a key was processed. */
void psv_store(struct psv *psv, uint32_t running);

#endif
