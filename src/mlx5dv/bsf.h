/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BSFs: 64 bytes behind the translation entries of a UMR that say how a key's blocks are signed (mlx5-formats 1.11) or
 * encrypted (1.12). Pure functions of what the setters stored.
 */
#ifndef SOFTHCA_MLX5DV_BSF_H
#define SOFTHCA_MLX5DV_BSF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/settings.h"
#include "verbs/memory/signature.h"

enum { BSF_BYTES = 64 };

/** Selector of a block size, in signature and crypto BSFs alike; never 0, which means no blocks. */
uint8_t bsf_block_selector(enum mlx5dv_block_size size);

/**
 * Writes the BSF of @signature, whose domains may both be without one. @crypto_follows: a crypto BSF comes behind it.
 * Returns 0, or -EINVAL if MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK was set for domains of different structure; of profile
 * connectx a memory domain alone passes.
 */
int signature_bsf(const struct key_signature *signature, enum setting_PROFILE profile, bool crypto_follows,
		  uint8_t bsf[BSF_BYTES]);

/** What SET_PSV gives the PSV of @domain, which has a signature: seed, tags (mlx5-formats 1.13). */
uint64_t signature_transient(const struct key_domain *domain);

#endif
