/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks in the order of mlx5-formats 4.5, all EINVAL. The attributes are copied to the key, and encoded when the work
 * request is closed (mlx5dv/wr_block.c).
 */
#include "core/settings.h"
#include "verbs/object/lint.h"
#include "verbs/memory/signature.h"
#include "mlx5dv/wr_mkey.h"
#include "verbs/post/wqe_builder.h"

static const char call[] = "mlx5dv_wr_set_mkey_sig_block";

#define KNOWN_FLAGS ((uint32_t)MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK)
#define KNOWN_T10DIF_FLAGS                                                                                             \
	(MLX5DV_SIG_T10DIF_FLAG_REF_REMAP | MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE | MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE)

struct checked {
	const struct mlx5dv_sig_block_domain *domain;
	uint8_t number; /* DOMAIN_* */
};

/* FIGURES(number of the domain, value). Returns false. */
static bool domain_refuse(struct user_qp *qp, enum explain_rule rule, const uint64_t *figures, size_t count)
{
	wr_refuse(qp, call, EINVAL, rule, figures, count);
	return false;
}

static bool t10dif_allowed(struct user_qp *qp, const struct checked *checked)
{
	const struct mlx5dv_sig_t10dif *dif = checked->domain->sig.dif;

	if (dif->bg != 0 && dif->bg != UINT16_MAX)
		return domain_refuse(qp, RULE_SIG_T10DIF_SEED, FIGURES(checked->number, dif->bg));
	if (dif->bg_type != MLX5DV_SIG_T10DIF_CRC && dif->bg_type != MLX5DV_SIG_T10DIF_CSUM)
		return domain_refuse(qp, RULE_SIG_T10DIF_GUARD, FIGURES(checked->number, dif->bg_type));
	if (dif->flags & ~KNOWN_T10DIF_FLAGS)
		return domain_refuse(qp, RULE_SIG_T10DIF_FLAGS, FIGURES(checked->number, dif->flags));
	return true;
}

/*
 * Returns the bits of the seed that are compared. "Bits not relevant to the CRC type are ignored … only the 32 least
 * significant bits are used for CRC32/CRC32C". A ConnectX's library compares all (mlx5-formats 4.5).
 */
static uint64_t relevant_seed(const struct user_qp *qp, const struct mlx5dv_sig_crc *crc)
{
	bool all = crc->type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ||
		   hca_settings(hca_of_context(qp->base.context))->profile == PROFILE_CONNECTX;

	return all ? crc->seed : (uint32_t)crc->seed;
}

static bool crc_allowed(struct user_qp *qp, const struct checked *checked)
{
	const struct mlx5dv_sig_crc *crc = checked->domain->sig.crc;
	uint64_t seed = relevant_seed(qp, crc);

	if (crc->type > MLX5DV_SIG_CRC_TYPE_CRC64_XP10)
		return domain_refuse(qp, RULE_SIG_CRC_TYPE, FIGURES(checked->number, crc->type));
	if (seed != 0 && seed != (crc->type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? UINT64_MAX : UINT32_MAX))
		return domain_refuse(qp, RULE_SIG_CRC_SEED, FIGURES(checked->number, crc->seed));
	if (seed != crc->seed)
		LINT(profile_differs, hca_of_context(qp->base.context), call, RULE_SIG_CRC_SEED);
	return true;
}

static bool domain_allowed(struct user_qp *qp, const struct mlx5dv_sig_block_domain *domain, uint8_t number)
{
	const struct checked checked = {domain, number};

	if (!domain)
		return true;
	if (domain->block_size > MLX5DV_BLOCK_SIZE_4160)
		return domain_refuse(qp, RULE_SIG_BLOCK_SIZE, FIGURES(checked.number, domain->block_size));
	if (domain->comp_mask)
		return domain_refuse(qp, RULE_SIG_DOMAIN_COMP_MASK, FIGURES(checked.number, domain->comp_mask));
	switch (domain->sig_type) {
	case MLX5DV_SIG_TYPE_T10DIF:
		return t10dif_allowed(qp, &checked);
	case MLX5DV_SIG_TYPE_CRC:
		return crc_allowed(qp, &checked);
	}
	return domain_refuse(qp, RULE_SIG_TYPE, FIGURES(checked.number, domain->sig_type));
}

static bool sig_block_allowed(struct user_qp *qp, const struct mlx5dv_sig_block_attr *attr)
{
	const struct user_mkey *mkey = qp->builder.mkey;

	if (!mkey->signature)
		wr_refuse(qp, call, EINVAL, RULE_SIG_KEY, FIGURES(mkey->base.lkey, mkey->create_flags));
	else if (mkey->signature_state == BLOCK_UPDATED)
		wr_refuse(qp, call, EINVAL, RULE_SIG_TWICE, FIGURES(0));
	else if (!attr->mem && !attr->wire)
		wr_refuse(qp, call, EINVAL, RULE_SIG_NO_DOMAIN, FIGURES(0));
	else if (attr->flags & ~KNOWN_FLAGS)
		wr_refuse(qp, call, EINVAL, RULE_SIG_FLAGS, FIGURES(attr->flags, KNOWN_FLAGS));
	else if (attr->comp_mask)
		wr_refuse(qp, call, EINVAL, RULE_SIG_COMP_MASK, FIGURES(attr->comp_mask));
	else
		return domain_allowed(qp, attr->mem, DOMAIN_MEMORY) && domain_allowed(qp, attr->wire, DOMAIN_WIRE);
	return false;
}

/* The program may reuse its structures when the setter returns. */
static struct key_domain domain_copy(const struct mlx5dv_sig_block_domain *domain)
{
	struct key_domain copy = {.kind = SIGNATURE_NONE};

	if (!domain)
		return copy;
	copy.block_size = domain->block_size;
	if (domain->sig_type == MLX5DV_SIG_TYPE_T10DIF) {
		copy.kind = SIGNATURE_T10DIF;
		copy.dif = *domain->sig.dif;
		return copy;
	}
	copy.kind = SIGNATURE_CRC;
	copy.crc = *domain->sig.crc;
	if (copy.crc.type != MLX5DV_SIG_CRC_TYPE_CRC64_XP10)
		copy.crc.seed = (uint32_t)copy.crc.seed;
	return copy;
}

void dv_wr_set_mkey_sig_block(struct mlx5dv_qp_ex *dv, const struct mlx5dv_sig_block_attr *attr)
{
	struct user_qp *qp = to_user_qp_dv(dv);
	struct user_mkey *mkey = qp->builder.mkey;

	if (!mkey_setter_open(qp, call) || !sig_block_allowed(qp, attr))
		return;
	mkey->signature->memory = domain_copy(attr->mem);
	mkey->signature->wire = domain_copy(attr->wire);
	mkey->signature->flags = attr->flags;
	mkey->signature->check_mask = attr->check_mask;
	mkey->signature->copy_mask = attr->copy_mask;
	mkey->signature_state = BLOCK_UPDATED;
	LINT(signature_set, qp, mkey, attr->check_mask);
	mkey_setter_done(qp);
}
