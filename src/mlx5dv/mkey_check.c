/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profile man queries the device. Profile connectx works like adapters and their library: it decodes the error that
 * polling recorded (verbs/memory/signature.h), by the domain in which it was detected (mlx5-formats 4.6).
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/lint.h"
#include "verbs/memory/signature.h"

#define SYNDROMES (SYNDROME_GUARD | SYNDROME_APP_TAG | SYNDROME_REF_TAG)

/* Extracts the failed field from a value packed as in mlx5-formats 3.5. */
static uint64_t error_field(uint64_t value, enum mlx5dv_mkey_err_type type, const struct key_domain *domain)
{
	switch (type) {
	case MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG:
		return value >> 32 & 0xffff;
	case MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG:
		return value & 0xffffffff;
	default:
		if (domain->kind == SIGNATURE_T10DIF)
			return value >> 48;
		return domain->crc.type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? value : value >> 32;
	}
}

/*
 * mlx5dv_mkey_check(3), err_type: "only a single error is reported in this priority: BAD_GUARD, BAD_APPTAG,
 * BAD_REFTAG".
 */
static enum mlx5dv_mkey_err_type error_type(uint16_t syndrome)
{
	if (syndrome & SYNDROME_GUARD)
		return MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;
	return syndrome & SYNDROME_APP_TAG ? MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG : MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
}

/* Opposite to the page, "actual" is the field that arrived, "expected" the correct one. */
static void error_decode(const struct key_error *error, const struct key_domain *domain, struct mlx5dv_mkey_err *info)
{
	info->err_type = error_type(error->syndrome);
	info->err.sig.actual_value = error_field(error->actual, info->err_type, domain);
	info->err.sig.expected_value = error_field(error->expected, info->err_type, domain);
	info->err.sig.offset = error->offset;
}

/* Explained after the table's lock is released. */
struct refusal {
	enum explain_rule rule;
	struct key_error error;
};

/* Decodes and clears the recorded error. The table's lock is held. */
static struct refusal key_error_take(struct key_signature *signature, struct mlx5dv_mkey_err *info)
{
	const struct key_error *error = &signature->error;
	const struct key_domain *domain = error->domain == DOMAIN_MEMORY ? &signature->memory : &signature->wire;

	struct refusal refusal = {.error = *error};

	if (!signature->error_exists)
		return refusal;
	if (!(error->syndrome & SYNDROMES) || error->type || error->domain > DOMAIN_MEMORY) {
		refusal.rule = RULE_MKEY_CHECK_UNKNOWN_ERROR;
	} else if (domain->kind == SIGNATURE_NONE) {
		refusal.rule = RULE_MKEY_CHECK_NO_DOMAIN;
	} else {
		error_decode(error, domain, info);
		signature->error_exists = false;
	}
	return refusal;
}

static int mkey_check_refuse(struct hca *hca, const struct user_mkey *mkey, const struct refusal *refusal)
{
	const struct key_error *error = &refusal->error;

	if (refusal->rule == RULE_MKEY_CHECK_NO_DOMAIN)
		return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_NO_DOMAIN, mkey->base.lkey,
			      error->domain);
	return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_UNKNOWN_ERROR, mkey->base.lkey, error->syndrome,
		      error->type, error->domain);
}

/* For profile connectx. Returns 0 or an errno value. */
static int check_polled(struct user_mkey *mkey, struct hca *hca, struct mlx5dv_mkey_err *found)
{
	struct signature_table *table = &to_user_context(mkey->pd->base.context)->signatures;
	struct refusal refusal;

	queue_lock(&table->lock);
	refusal = key_error_take(mkey->signature, found);
	queue_unlock(&table->lock);
	return refusal.rule == RULE_NONE ? 0 : mkey_check_refuse(hca, mkey, &refusal);
}

/* @size: of the caller's structure, which may come from another version of the header. */
int softhca__mlx5dv_mkey_check(struct mlx5dv_mkey *dv_mkey, struct mlx5dv_mkey_err *info, size_t size)
{
	struct user_mkey *mkey = user_container_of(dv_mkey, struct user_mkey, base);
	struct mlx5dv_mkey_err found = {.err_type = MLX5DV_MKEY_NO_ERR};
	struct hca *hca;
	int error = 0;

	if (object_refused("mlx5dv_mkey_check", NULL, dv_mkey))
		return errno;
	hca = hca_of_context(mkey->pd->base.context);
	if (!mkey->signature)
		return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_NO_SIGNATURE, mkey->base.lkey);
	LINT(key_checked, mkey);
	if (hca_settings(hca)->profile == PROFILE_MAN)
		hca_mkey_take_error(mkey->key, &found);
	else
		error = check_polled(mkey, hca, &found);
	if (!error)
		memcpy(info, &found, size < sizeof(found) ? size : sizeof(found));
	return error;
}
