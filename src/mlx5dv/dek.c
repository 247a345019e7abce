/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_dek_create(3), mlx5dv_dek_query(3), mlx5dv_dek_destroy(3). See verbs/object/dek.h. */
#include "verbs/object/dek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/refusal.h"
#include "verbs/object/crypto_login.h"

static const char create[] = "mlx5dv_dek_create";

/*
 * "The format that should be used is determined by the specified crypto_login object": a field with NULL is a plaintext
 * DEK; without the field the DEK is wrapped for the session of mlx5dv_crypto_login(3). Returns 0 or the errno value.
 */
static int dek_check_import(struct ibv_context *context, const struct mlx5dv_dek_init_attr *attr, bool *wrapped)
{
	bool has_login = attr->comp_mask & MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN;
	struct hca *hca = hca_of_context(context);
	bool device_wraps = hca_settings(hca)->crypto == CRYPTO_WRAPPED;
	enum mlx5dv_crypto_login_state session;

	*wrapped = !has_login || attr->crypto_login;
	if (*wrapped && !device_wraps)
		return REFUSE(hca, create, EINVAL, RULE_DEK_PLAINTEXT_DEVICE, 0);
	if (!*wrapped && device_wraps)
		return REFUSE(hca, create, EINVAL, RULE_DEK_WRAPPED_DEVICE, 0);
	if (!has_login) {
		softhca_mlx5dv_crypto_login_query_state(context, &session);
		if (session != MLX5DV_CRYPTO_LOGIN_STATE_VALID)
			return REFUSE(hca, create, EINVAL, RULE_DEK_NO_LOGIN, 0);
	}
	if (object_refused(create, context, attr->pd))
		return errno;
	if (has_login && optional_refused(create, context, attr->crypto_login))
		return errno;
	return 0;
}

/* Checks in the order of the real library. Returns 0 or the errno value. */
static int dek_check_create(struct ibv_context *context, const struct mlx5dv_dek_init_attr *attr, bool *wrapped)
{
	struct hca *hca = hca_of_context(context);

	if (hca_settings(hca)->crypto == CRYPTO_OFF)
		return REFUSE(hca, create, EOPNOTSUPP, RULE_CRYPTO_NOT_OFFERED, 0);
	if (attr->key_purpose != MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS ||
	    (unsigned int)attr->key_size > MLX5DV_CRYPTO_KEY_SIZE_256 ||
	    attr->comp_mask & ~(uint64_t)MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN)
		return REFUSE(hca, create, EINVAL, RULE_DEK_ATTR, attr->key_purpose, attr->key_size, attr->comp_mask);
	return dek_check_import(context, attr, wrapped);
}

struct mlx5dv_dek *softhca_mlx5dv_dek_create(struct ibv_context *context, struct mlx5dv_dek_init_attr *attr)
{
	struct hca_dek_attr device_attr = {
		.key_bytes = attr->key_size == MLX5DV_CRYPTO_KEY_SIZE_256 ? 64 : 32,
		.has_keytag = attr->has_keytag,
		.key = attr->key,
	};
	struct refusal why = {.rule = RULE_NONE};
	struct user_dek *dek;
	int error = dek_check_create(context, attr, &device_attr.wrapped);

	if (error) {
		errno = error;
		return NULL;
	}
	dek = malloc(sizeof(*dek));
	if (!dek)
		return NULL;
	dek->pd = to_user_pd(attr->pd);
	dek->wrapped = device_attr.wrapped;
	memcpy(dek->opaque, attr->opaque, sizeof(dek->opaque));
	error = -hca_dek_create(to_user_context(context)->device, dek->pd->device, &device_attr, &dek->id, &why);
	if (error) {
		refusal_explain(hca_of_context(context), create, error, &why);
		free(dek);
		errno = error;
		return NULL;
	}
	user_pd_get(dek->pd);
	object_enter((struct mlx5dv_dek *)dek, &dek->alive, context);
	return (struct mlx5dv_dek *)dek;
}

int softhca_mlx5dv_dek_query(struct mlx5dv_dek *dv_dek, struct mlx5dv_dek_attr *attr)
{
	const struct user_dek *dek = (const struct user_dek *)dv_dek;
	struct ibv_context *context;
	struct hca *hca;

	if (object_refused("mlx5dv_dek_query", NULL, dv_dek))
		return errno;
	context = dek->pd->base.context;
	hca = hca_of_context(context);
	if (attr->comp_mask)
		return REFUSE(hca, "mlx5dv_dek_query", EINVAL, RULE_CRYPTO_COMP_MASK, attr->comp_mask);
	if (dek->wrapped && !hca_logged_in(to_user_context(context)->device))
		return REFUSE(hca, "mlx5dv_dek_query", EINVAL, RULE_LOGIN_NONE, 0);
	attr->state = MLX5DV_DEK_STATE_READY;
	memcpy(attr->opaque, dek->opaque, sizeof(attr->opaque));
	return 0;
}

int softhca_mlx5dv_dek_destroy(struct mlx5dv_dek *dv_dek)
{
	struct user_dek *dek = (struct user_dek *)dv_dek;

	if (object_refused("mlx5dv_dek_destroy", NULL, dv_dek))
		return errno;
	object_leave(&dek->alive);
	hca_dek_destroy(hca_of_context(dek->pd->base.context), dek->id);
	user_pd_put(dek->pd);
	free(dek);
	return 0;
}
