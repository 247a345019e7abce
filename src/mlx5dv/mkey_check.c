/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_mkey_check(3): the error that polling recorded in the key (mlx5dv/signature.c), decoded by the domain it was
 * found in (mlx5-formats 4.6).
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "mlx5dv/signature.h"

#define SYNDROMES (SYNDROME_GUARD | SYNDROME_APP_TAG | SYNDROME_REF_TAG)

/* The field in question, of a 64-bit value packed as mlx5-formats 3.5 has it. */
static uint64_t field_of(uint64_t value, enum mlx5dv_mkey_err_type type, const struct key_domain *domain)
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

/* ARGUMENTS, err_type: "only a single error is reported in this priority: BAD_GUARD, BAD_APPTAG, BAD_REFTAG". */
static enum mlx5dv_mkey_err_type type_of(uint16_t syndrome)
{
	if (syndrome & SYNDROME_GUARD)
		return MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;
	return syndrome & SYNDROME_APP_TAG ? MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG : MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
}

/*
 * The CQE has it as a ConnectX does: "actual" is the field that came, "expected" what it should have been, and the
 * offset that of the last byte of block and field. The manual page has it the other way round, and promises a block
 * boundary.
 */
static void decode(const struct key_error *error, const struct key_domain *domain, enum setting_PROFILE profile,
		   struct mlx5dv_mkey_err *info)
{
	uint32_t extended = signature_block_bytes(domain->block_size) + signature_field_bytes(domain);
	struct mlx5dv_sig_err *sig = &info->err.sig;
	uint64_t found, computed;

	info->err_type = type_of(error->syndrome);
	found = field_of(error->actual, info->err_type, domain);
	computed = field_of(error->expected, info->err_type, domain);
	if (profile == PROFILE_MAN) {
		sig->actual_value = computed;
		sig->expected_value = found;
		sig->offset = error->offset - error->offset % extended;
	} else {
		sig->actual_value = found;
		sig->expected_value = computed;
		sig->offset = error->offset;
	}
}

/* What the check refuses, explained when the table's lock is free again. */
struct refusal {
	enum explain_rule rule; /* RULE_NONE: nothing */
	struct key_error error;
};

/* The table's lock is held. */
static struct refusal take_error(struct key_signature *signature, enum setting_PROFILE profile,
				 struct mlx5dv_mkey_err *info)
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
		decode(error, domain, profile, info);
		signature->error_exists = false;
	}
	return refusal;
}

static int refuse(struct hca *hca, const struct user_mkey *mkey, const struct refusal *refusal)
{
	const struct key_error *error = &refusal->error;

	if (refusal->rule == RULE_MKEY_CHECK_NO_DOMAIN)
		return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_NO_DOMAIN, mkey->base.lkey,
			      error->domain);
	return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_UNKNOWN_ERROR, mkey->base.lkey, error->syndrome,
		      error->type, error->domain);
}

/* @size: of the caller's structure, which may be of another version of the header. */
int softhca__mlx5dv_mkey_check(struct mlx5dv_mkey *dv_mkey, struct mlx5dv_mkey_err *info, size_t size)
{
	struct user_mkey *mkey = user_container_of(dv_mkey, struct user_mkey, base);
	struct user_context *context = to_user_context(mkey->pd->base.context);
	struct hca *hca = hca_of_context(mkey->pd->base.context);
	struct mlx5dv_mkey_err found = {.err_type = MLX5DV_MKEY_NO_ERR};
	struct refusal refusal;

	if (!mkey->signature)
		return REFUSE(hca, "mlx5dv_mkey_check", EINVAL, RULE_MKEY_CHECK_NO_SIGNATURE, mkey->base.lkey);
	queue_lock(&context->signatures.lock);
	refusal = take_error(mkey->signature, hca_settings(hca)->profile, &found);
	queue_unlock(&context->signatures.lock);
	if (refusal.rule != RULE_NONE)
		return refuse(hca, mkey, &refusal);
	memcpy(info, &found, size < sizeof(found) ? size : sizeof(found));
	return 0;
}
