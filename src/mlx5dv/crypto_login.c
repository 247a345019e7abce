/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_crypto_login(3), mlx5dv_crypto_login_create(3). See verbs/object/crypto_login.h. */
#include "verbs/object/crypto_login.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "explain/refusal.h"

/* Returns 0, or the errno value after an explanation. */
static int login_make(struct ibv_context *context, const char *call, const struct hca_login_attr *attr,
		      struct hca_login **out)
{
	struct refusal why = {.rule = RULE_NONE};
	int error = -hca_login_create(to_user_context(context)->device, attr, out, &why);

	if (error)
		refusal_explain(hca_of_context(context), call, error, &why);
	return error;
}

static int login_refuse_comp_mask(struct ibv_context *context, const char *call, uint64_t comp_mask)
{
	return REFUSE(hca_of_context(context), call, EINVAL, RULE_CRYPTO_COMP_MASK, comp_mask);
}

int softhca_mlx5dv_crypto_login(struct ibv_context *context, struct mlx5dv_crypto_login_attr *attr)
{
	const struct hca_login_attr device_attr = {
		.credential_id = attr->credential_id,
		.import_kek_id = attr->import_kek_id,
		.credential = attr->credential,
		.credential_bytes = sizeof(attr->credential),
	};
	struct hca_login **session = &to_user_context(context)->crypto_session;
	int error;

	if (attr->comp_mask)
		return login_refuse_comp_mask(context, "mlx5dv_crypto_login", attr->comp_mask);
	pthread_mutex_lock(&context->mutex);
	error = login_make(context, "mlx5dv_crypto_login", &device_attr, session);
	pthread_mutex_unlock(&context->mutex);
	return error;
}

int softhca_mlx5dv_crypto_login_query_state(struct ibv_context *context, enum mlx5dv_crypto_login_state *state)
{
	pthread_mutex_lock(&context->mutex);
	/* KEKs and credentials are never revoked, so a login never becomes invalid. */
	*state = to_user_context(context)->crypto_session ? MLX5DV_CRYPTO_LOGIN_STATE_VALID
							  : MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN;
	pthread_mutex_unlock(&context->mutex);
	return 0;
}

int softhca_mlx5dv_crypto_logout(struct ibv_context *context)
{
	struct hca_login **session = &to_user_context(context)->crypto_session;
	struct hca_login *ended;

	pthread_mutex_lock(&context->mutex);
	ended = *session;
	*session = NULL;
	pthread_mutex_unlock(&context->mutex);
	if (!ended)
		return REFUSE(hca_of_context(context), "mlx5dv_crypto_logout", ENOENT, RULE_LOGIN_NONE, 0);
	hca_login_destroy(ended);
	return 0;
}

struct mlx5dv_crypto_login_obj *softhca_mlx5dv_crypto_login_create(struct ibv_context *context,
								   struct mlx5dv_crypto_login_attr_ex *attr)
{
	const struct hca_login_attr device_attr = {
		.credential_id = attr->credential_id,
		.import_kek_id = attr->import_kek_id,
		.credential = attr->credential,
		.credential_bytes = attr->credential_len,
	};
	struct user_crypto_login *object;
	int error;

	if (attr->comp_mask) {
		errno = login_refuse_comp_mask(context, "mlx5dv_crypto_login_create", attr->comp_mask);
		return NULL;
	}
	object = malloc(sizeof(*object));
	if (!object)
		return NULL;
	object->context = context;
	error = login_make(context, "mlx5dv_crypto_login_create", &device_attr, &object->device);
	if (error) {
		free(object);
		errno = error;
		return NULL;
	}
	object_enter((struct mlx5dv_crypto_login_obj *)object, &object->alive, context);
	return (struct mlx5dv_crypto_login_obj *)object;
}

int softhca_mlx5dv_crypto_login_query(struct mlx5dv_crypto_login_obj *crypto_login,
				      struct mlx5dv_crypto_login_query_attr *attr)
{
	const struct user_crypto_login *object = (const struct user_crypto_login *)crypto_login;

	if (object_refused("mlx5dv_crypto_login_query", NULL, crypto_login))
		return errno;
	if (attr->comp_mask)
		return login_refuse_comp_mask(object->context, "mlx5dv_crypto_login_query", attr->comp_mask);
	attr->state = MLX5DV_CRYPTO_LOGIN_STATE_VALID;
	return 0;
}

int softhca_mlx5dv_crypto_login_destroy(struct mlx5dv_crypto_login_obj *crypto_login)
{
	struct user_crypto_login *object = (struct user_crypto_login *)crypto_login;

	if (object_refused("mlx5dv_crypto_login_destroy", NULL, crypto_login))
		return errno;
	object_leave(&object->alive);
	hca_login_destroy(object->device);
	free(object);
	return 0;
}
