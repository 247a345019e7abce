/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encryption of keys, the driver's side: what mlx5dv_wr_set_mkey_crypto(3) set. The BSF that tells the device is
 * crypto_bsf() of mlx5dv/wr_block.h.
 *
 * A struct key_crypto belongs to its user_mkey: made and freed with it, covered as the key's attributes
 * (verbs/object/objects.h). It names its DEK by number: a DEK that is destroyed before the next UMR is one that the device no
 * longer knows.
 */
#ifndef SOFTHCA_MLX5DV_WR_CRYPTO_H
#define SOFTHCA_MLX5DV_WR_CRYPTO_H

#include "verbs/object/objects.h"

/* A copy of struct mlx5dv_crypto_attr. */
struct key_crypto {
	bool encrypt_on_tx;
	enum mlx5dv_signature_crypto_order signature_order;
	enum mlx5dv_block_size data_unit_size;
	uint8_t initial_tweak[16]; /* little-endian */
	uint32_t dek;              /* its object id */
	uint8_t keytag[8];
};

/**
 * mlx5dv_wr_set_mkey_crypto(3): the member of struct mlx5dv_qp_ex. Latches EINVAL, in the order of mlx5-formats 4.4; a
 * refused setter leaves the key's attributes as they were.
 */
void dv_wr_set_mkey_crypto(struct mlx5dv_qp_ex *dv, const struct mlx5dv_crypto_attr *attr);

#endif
