/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encryption of keys, on the driver's side (mlx5dv/wr_block.h encodes it).
 *
 * A struct key_crypto is created and freed with its user_mkey; the lock is that of the key's attributes
 * (verbs/object/objects.h). It names its DEK by number: if the DEK is destroyed before the next UMR, the device does
 * not find it.
 */
#ifndef SOFTHCA_MLX5DV_WR_CRYPTO_H
#define SOFTHCA_MLX5DV_WR_CRYPTO_H

#include "verbs/object/objects.h"

/* Copy of struct mlx5dv_crypto_attr. */
struct key_crypto {
	bool encrypt_on_tx;
	enum mlx5dv_signature_crypto_order signature_order;
	enum mlx5dv_block_size data_unit_size;
	uint8_t initial_tweak[16]; /* little-endian */
	uint32_t dek;              /* object id */
	uint8_t keytag[8];
};

/**
 * Latches EINVAL, with checks in the order of mlx5-formats 4.4; a refused setter leaves the key's attributes unchanged.
 */
void dv_wr_set_mkey_crypto(struct mlx5dv_qp_ex *dv, const struct mlx5dv_crypto_attr *attr);

#endif
