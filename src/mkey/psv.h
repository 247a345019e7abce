/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of signature domains (mlx5-formats 1.11, 1.13). Only a transaction signature uses its PSV, to continue from
 * one key to the next; that of block signatures is in the key (mkey/block_progress.h).
 *
 * The driver owns PSVs. Look them up inside epoch sections. Lock: the device's psv_lock, a leaf, covers all members
 * except pd and index.
 */
#ifndef SOFTHCA_MKEY_PSV_H
#define SOFTHCA_MKEY_PSV_H

#include "hca/hca.h"

struct psv {
	struct hca_pd *pd;
	uint32_t index;
	uint64_t transient; /* as in SET_PSV: a running 32-bit CRC in the upper half */
	/* The configuration that used the PSV last, and its initial CRC: data that is read again must begin with it. */
	uint64_t serial, version, start;
};

/** Returns NULL if PSV @index does not belong to domain @pd. */
struct psv *psv_find(struct hca *hca, uint32_t index, uint32_t pd);

void psv_set(struct psv *psv, uint64_t transient);

/** Returns the initial CRC for configuration @version of the key with @serial, in repeated calls the same. */
uint32_t psv_begin(struct psv *psv, uint64_t serial, uint64_t version);

void psv_store(struct psv *psv, uint32_t running);

#endif
