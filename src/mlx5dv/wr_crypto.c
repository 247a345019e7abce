/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 1.12 and 4.4. */
#include "mlx5dv/wr_crypto.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/tweak_order.h"
#include "verbs/object/dek.h"
#include "mlx5dv/wr_block.h"
#include "mlx5dv/wr_mkey.h"
#include "verbs/post/wqe_builder.h"

enum {
	SIZE_ALONE = 2 << 6,
	SIZE_BEHIND_SIGNATURE = 3 << 6,
	TYPE_CRYPTO = 1,
	STANDARD_AES_XTS = 0,
};

/*
 * Location of the ciphertext, and whether its signature covers the plaintext ("with signature") or the ciphertext
 * ("raw").
 */
enum encryption_order {
	WIRE_WITH_SIGNATURE = 0,
	MEMORY_WITH_SIGNATURE = 1,
	RAW_WIRE = 2,
	RAW_MEMORY = 3,
};

struct crypto_bsf {
	uint8_t size_type;
	uint8_t order;
	uint8_t reserved0;
	uint8_t standard;
	__be32 raw_data_size;
	uint8_t data_unit;
	uint8_t reserved1[7];
	uint8_t initial_tweak[16];
	__be32 dek;
	uint8_t reserved2[4];
	uint8_t keytag[8];
	uint8_t reserved3[16];
};

_Static_assert(sizeof(struct crypto_bsf) == BSF_BYTES, "mlx5-formats 1.12");

static enum encryption_order encryption_order_of(const struct key_crypto *crypto)
{
	bool after = crypto->signature_order == MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX;

	if (crypto->encrypt_on_tx)
		return after ? RAW_WIRE : WIRE_WITH_SIGNATURE;
	return after ? MEMORY_WITH_SIGNATURE : RAW_MEMORY;
}

static bool has_two_signatures(const struct key_signature *signature)
{
	return signature && signature->memory.kind != SIGNATURE_NONE && signature->wire.kind != SIGNATURE_NONE;
}

int crypto_bsf(const struct user_qp *qp, const struct user_mkey *mkey, uint8_t out[BSF_BYTES])
{
	const struct key_crypto *crypto = mkey->crypto;
	struct crypto_bsf bsf = {
		.size_type = (mkey->signature ? SIZE_BEHIND_SIGNATURE : SIZE_ALONE) | TYPE_CRYPTO,
		.order = encryption_order_of(crypto),
		.standard = STANDARD_AES_XTS,
		.raw_data_size = htobe32(UINT32_MAX),
		.data_unit = bsf_block_selector(crypto->data_unit_size),
		.dek = htobe32(crypto->dek),
	};

	/* Not in the table of mlx5dv_wr_set_mkey_crypto(3); adapters cannot do it (mlx5-formats 1.12). */
	if (bsf.order >= RAW_WIRE && has_two_signatures(mkey->signature))
		return -EINVAL;
	tweak_copy(hca_settings(hca_of_context(qp->base.context))->crypto_tweak, bsf.initial_tweak,
		   crypto->initial_tweak);
	memcpy(bsf.keytag, crypto->keytag, sizeof(bsf.keytag));
	memcpy(out, &bsf, sizeof(bsf));
	return 0;
}

static bool attributes_are_valid(const struct mlx5dv_crypto_attr *attr)
{
	return !attr->comp_mask && attr->crypto_standard == MLX5DV_CRYPTO_STANDARD_AES_XTS &&
	       (attr->signature_crypto_order == MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX ||
		attr->signature_crypto_order == MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX) &&
	       (unsigned int)attr->data_unit_size <= MLX5DV_BLOCK_SIZE_4160;
}

static bool setter_allowed(struct user_qp *qp, const char *call, const struct mlx5dv_crypto_attr *attr)
{
	const struct user_mkey *mkey = qp->builder.mkey;

	if (!mkey_setter_open(qp, call))
		return false;
	if (!mkey->crypto) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_CRYPTO_FLAG, FIGURES(mkey->create_flags));
		return false;
	}
	if (mkey->crypto_state == BLOCK_UPDATED) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_CRYPTO_TWICE, FIGURES(0));
		return false;
	}
	if (!attributes_are_valid(attr)) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_CRYPTO_ATTR,
			  FIGURES(attr->comp_mask, attr->crypto_standard, attr->signature_crypto_order,
				  attr->data_unit_size));
		return false;
	}
	if (!attr->dek) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_CRYPTO_DEK, FIGURES(0));
		return false;
	}
	return true;
}

void dv_wr_set_mkey_crypto(struct mlx5dv_qp_ex *dv, const struct mlx5dv_crypto_attr *attr)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	struct user_mkey *mkey = qp->builder.mkey;
	struct key_crypto *crypto;

	if (!setter_allowed(qp, "mlx5dv_wr_set_mkey_crypto", attr))
		return;
	crypto = mkey->crypto;
	crypto->encrypt_on_tx = attr->encrypt_on_tx;
	crypto->signature_order = attr->signature_crypto_order;
	crypto->data_unit_size = attr->data_unit_size;
	memcpy(crypto->initial_tweak, attr->initial_tweak, sizeof(crypto->initial_tweak));
	crypto->dek = user_dek_id(attr->dek);
	memcpy(crypto->keytag, attr->keytag, sizeof(crypto->keytag));
	mkey->crypto_state = BLOCK_UPDATED;
	mkey_setter_done(qp);
}
