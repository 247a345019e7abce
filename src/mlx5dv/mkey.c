/* SPDX-License-Identifier: BSD-2-Clause */
/* A key is created free, with a capacity; a UMR (mlx5dv/wr_mkey.c) gives it a layout and rights. */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "mlx5dv/bsf.h"
#include "verbs/object/lint.h"
#include "verbs/memory/signature.h"
#include "mlx5dv/wr_crypto.h"
#include "verbs/object/objects.h"

#define MKEY_KNOWN_FLAGS                                                                                               \
	(MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE |                          \
	 MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG |                                 \
	 MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE)

/* Checks in the order of mlx5-formats 4.3. Returns 0 or the errno value. */
static int mkey_check_create(struct hca *hca, const struct mlx5dv_mkey_init_attr *attr)
{
	const char *call = "mlx5dv_create_mkey";

	if (!attr->create_flags || attr->create_flags & ~(uint32_t)MKEY_KNOWN_FLAGS)
		return REFUSE(hca, call, EOPNOTSUPP, RULE_MKEY_CREATE_FLAGS, attr->create_flags, MKEY_KNOWN_FLAGS);
	if (attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO && hca_settings(hca)->crypto == CRYPTO_OFF)
		return REFUSE(hca, call, EOPNOTSUPP, RULE_MKEY_NO_CRYPTO, attr->create_flags);
	if (attr->max_entries > LIMIT_MAX_MKEY_ENTRIES)
		return REFUSE(hca, call, EINVAL, RULE_MKEY_MAX_ENTRIES, attr->max_entries, LIMIT_MAX_MKEY_ENTRIES);
	return 0;
}

/* Returns the octowords of the BSFs that the key can have (mlx5-formats 4.3). */
static uint8_t bsf_octowords(uint32_t create_flags)
{
	enum { OCTOWORD = 16 };
	uint32_t bytes = 0;

	if (create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE)
		bytes += BSF_BYTES;
	if (create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO)
		bytes += BSF_BYTES;
	return bytes / OCTOWORD;
}

static void mkey_free(struct user_mkey *mkey)
{
	free(mkey->crypto);
	free(mkey);
}

static struct user_mkey *mkey_alloc(uint32_t create_flags)
{
	struct user_mkey *mkey = calloc(1, sizeof(*mkey));

	if (!mkey)
		return NULL;
	mkey->create_flags = create_flags;
	if (create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO)
		mkey->crypto = calloc(1, sizeof(*mkey->crypto));
	if (create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO && !mkey->crypto) {
		free(mkey);
		return NULL;
	}
	return mkey;
}

/* Creates the key and its signature. Returns 0 or -errno. */
static int mkey_create_in_device(struct user_mkey *mkey, const struct hca_mkey_attr *attr)
{
	int error = hca_mkey_create(mkey->pd->device, attr, &mkey->key);

	if (error || !(mkey->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE))
		return error;
	error = key_signature_create(mkey);
	if (error)
		hca_mkey_destroy(mkey->key);
	return error;
}

struct mlx5dv_mkey *softhca_mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
	struct user_pd *pd = to_user_pd(attr->pd);
	/* Translations come in 64-byte groups; the actual number is returned. */
	uint16_t max_entries = (attr->max_entries + 3) & ~3;
	struct hca_mkey_attr device_attr = {
		.max_entries = max_entries,
		.bsf_octowords = bsf_octowords(attr->create_flags),
		.cipher = attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO,
		.remote_invalidate = attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE,
		.update_tag = attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG,
	};
	struct user_mkey *mkey;
	int error;

	if (object_refused("mlx5dv_create_mkey", NULL, attr->pd))
		return NULL;
	error = mkey_check_create(hca_of_context(pd->base.context), attr);
	if (error) {
		errno = error;
		return NULL;
	}
	mkey = mkey_alloc(attr->create_flags);
	if (!mkey)
		return NULL;
	mkey->pd = pd;
	mkey->max_entries = max_entries;
	error = -mkey_create_in_device(mkey, &device_attr);
	if (error) {
		mkey_free(mkey);
		errno = error;
		return NULL;
	}
	mkey->base.lkey = mkey->base.rkey = mkey_number(mkey->key);
	user_pd_get(pd);
	object_enter(&mkey->base, &mkey->alive, pd->base.context);
	attr->max_entries = max_entries;
	return &mkey->base;
}

int softhca_mlx5dv_destroy_mkey(struct mlx5dv_mkey *dv_mkey)
{
	struct user_mkey *mkey = user_container_of(dv_mkey, struct user_mkey, base);
	int error;

	if (object_refused("mlx5dv_destroy_mkey", NULL, dv_mkey))
		return errno;
	LINT(key_destroying, mkey);
	error = mkey->signature ? -key_signature_destroy(mkey) : 0;
	if (!error)
		error = -hca_mkey_destroy(mkey->key);
	if (error)
		return error;
	object_leave(&mkey->alive);
	user_pd_put(mkey->pd);
	mkey_free(mkey);
	return 0;
}
