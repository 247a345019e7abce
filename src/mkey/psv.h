/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PSVs: what a signature domain of a key refers to for its state (mlx5-formats 1.11, 1.13). What softhca keeps between
 * transfers is with the key (mkey/block_progress.h) and follows from positions otherwise; a PSV has its owner and what
 * SET_PSV stored. Owner: the driver, by hca_psv_create(). Looked up inside epoch sections.
 */
#ifndef SOFTHCA_MKEY_PSV_H
#define SOFTHCA_MKEY_PSV_H

#include "device/device.h"

struct psv {
	struct hca_pd *pd;
	uint32_t index;
	uint64_t transient; /* atomic */
};

/** The PSV @index if it belongs to domain @pd, else NULL. */
struct psv *psv_find(struct hca *hca, uint32_t index, uint32_t pd);

#endif
