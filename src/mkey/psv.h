/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSVs: what a signature domain of a key refers to for its state (mlx5-formats 1.11, 1.13). What softhca keeps of block signatures
 * between transfers is with the key (mkey/block_progress.h) and follows from positions otherwise. A transaction signature over the
 * data of several keys goes on from one to the next by its PSV. Owner: the driver, by hca_psv_create(). Looked up inside epoch
 * sections. The device's psv_lock covers all but the first two; nothing is called under it.
 */
#ifndef SOFTHCA_MKEY_PSV_H
#define SOFTHCA_MKEY_PSV_H

#include "hca/hca.h"

struct psv {
	struct hca_pd *pd;
	uint32_t index;
	uint64_t transient; /* as SET_PSV has it: a CRC of 32 bits, not finished, in the upper half */
	/* The configuration of a key that began last, and with what: so data that is read again changes nothing. */
	uint64_t serial, version, start;
};

/** The PSV @index if it belongs to domain @pd, else NULL. */
struct psv *psv_find(struct hca *hca, uint32_t index, uint32_t pd);

/** SET_PSV: from now on @psv holds @transient. */
void psv_set(struct psv *psv, uint64_t transient);

/** The running CRC that the data of configuration @version of the key with @serial begins with: the same however often asked. */
uint32_t psv_begin(struct psv *psv, uint64_t serial, uint64_t version);

/** All data of a key has been passed: its running CRC is @running. */
void psv_reach(struct psv *psv, uint32_t running);

#endif
