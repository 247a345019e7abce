/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BSFs follow the translation entries of a UMR and describe how a key's blocks are signed (mlx5-formats 1.11) or
 * encrypted (1.12). Pure functions; any thread.
 */
#ifndef SOFTHCA_MLX5DV_BSF_H
#define SOFTHCA_MLX5DV_BSF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/settings.h"
#include "verbs/memory/signature.h"

enum { BSF_BYTES = 64 };

/** Returns the selector for signature and crypto BSFs alike. Never 0, which means no blocks. */
uint8_t bsf_block_selector(enum mlx5dv_block_size size);

/**
 * Writes the BSF of @signature; both domains may be without one. @crypto_follows: a crypto BSF comes after it. Returns
 * 0, or -EINVAL if MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK was set for domains of different structure; profile connectx
 * accepts a memory domain alone.
 */
int signature_bsf(const struct key_signature *signature, enum setting_PROFILE profile, bool crypto_follows,
		  uint8_t bsf[BSF_BYTES]);

/** Returns the value for the PSV of @domain, which has a signature: seed, tags (mlx5-formats 1.13). */
uint64_t signature_transient(const struct key_domain *domain);

#endif
