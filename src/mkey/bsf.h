/* SPDX-License-Identifier: BSD-2-Clause */
/* BSFs, as UMR WQEs carry them, to setups (mlx5-formats 1.11, 1.12). Bytes from a ring: nothing is believed. */
#ifndef SOFTHCA_MKEY_BSF_H
#define SOFTHCA_MKEY_BSF_H

#include "block/setup.h"
#include "mkey/walk.h"

/** Switches @setup off and gives back what it refers to. */
void block_setup_clear(struct block_setup *setup);

/**
 * Replaces @setup by what @bsf of @octowords says: a signature BSF, a cipher BSF, or one behind the other. What a BSF
 * says nothing of is switched off. The DEK that @setup had a reference to is given back, the new one taken.
 * @key: number, for explanations. Returns 0 or -EACCES with @why filled and @setup unchanged.
 */
int bsf_parse(const struct walk_access *access, uint32_t key, const uint8_t *bsf, uint32_t octowords,
	      struct block_setup *setup, struct refusal *why);

#endif
