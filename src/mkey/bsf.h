/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the BSFs of UMR WQEs (mlx5-formats 1.11, 1.12). The bytes come from a ring, so every field is checked. */
#ifndef SOFTHCA_MKEY_BSF_H
#define SOFTHCA_MKEY_BSF_H

#include "block/setup.h"
#include "mkey/walk.h"

/** Switches @setup off and releases its DEK. */
void block_setup_clear(struct block_setup *setup);

/**
 * Replaces @setup by that of @bsf: a signature BSF, a cipher BSF, or the first followed by the second. A part without a
 * BSF is switched off. Releases the DEK of the old setup and references the new one. @key: number, for explanations.
 * Returns 0, or -EACCES with @why and @setup unchanged.
 */
int bsf_parse(const struct walk_access *access, uint32_t key, const uint8_t *bsf, uint32_t octowords,
	      struct block_setup *setup, struct refusal *why);

#endif
