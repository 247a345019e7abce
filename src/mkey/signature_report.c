/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports signature errors. */
#include "mkey/signature_report.h"

#include "block/field.h"

/* Returns the first bad part, in the order of mlx5dv_mkey_check(3): guard, application tag, reference tag. */
static uint16_t syndrome_of(const struct signature_domain *domain, uint64_t difference)
{
	if (difference & guard_bytes(domain))
		return SYNDROME_GUARD;
	return difference & FIELD_APP ? SYNDROME_APP_TAG : SYNDROME_REF_TAG;
}

/* Returns the part of @field that @type names (mlx5-formats 3.5). */
static uint64_t field_number(uint64_t field, enum mlx5dv_mkey_err_type type, const struct signature_domain *domain)
{
	switch (type) {
	case MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG:
		return (field & FIELD_APP) >> FIELD_APP_SHIFT;
	case MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG:
		return field & FIELD_REF;
	default:
		return field >> guard_shift(domain);
	}
}

static enum mlx5dv_mkey_err_type error_type(uint16_t syndrome)
{
	switch (syndrome) {
	case SYNDROME_GUARD:
		return MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;
	case SYNDROME_APP_TAG:
		return MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG;
	default:
		return MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
	}
}

static struct refusal explain_error(const struct block_stage *stage, const struct signature_error *error)
{
	const struct signature_domain *input = stage->signature.input;
	enum mlx5dv_mkey_err_type type = error_type(error->syndrome);
	/* Bytes that are not checked read as 0. */
	uint64_t checked = stage->setup->signature.checked;
	uint64_t expected = field_number(error->expected & checked, type, input);
	uint64_t found = field_number(error->found & checked, type, input);

	switch (error->syndrome) {
	case SYNDROME_GUARD:
		return (struct refusal){RULE_BLOCK_GUARD,
					{error->key, error->block, error->memory, expected, found, error->offset}};
	case SYNDROME_APP_TAG:
		return (struct refusal){RULE_BLOCK_APP_TAG,
					{error->key, error->block, error->memory, expected, found, error->offset}};
	default:
		return (struct refusal){RULE_BLOCK_REF_TAG,
					{error->key, error->block, error->memory, expected, found, error->offset}};
	}
}

/*
 * mlx5dv_mkey_check(3): "guaranteed to be a block boundary offset". Returns where the block begins in the message, or
 * where the message enters the key if that is inside the block: bytes of other SGEs are not part of the error.
 */
static uint64_t offset_in_message(const struct block_stage *stage, uint64_t number)
{
	uint64_t raw = number * stage->signature.input->block;
	int64_t offset = (int64_t)(stage->origin + wire_position_of(&stage->setup->signature, raw));
	int64_t start = (int64_t)stage->start < 0 ? 0 : (int64_t)stage->start;

	return (uint64_t)(offset < start ? start : offset);
}

/* mlx5dv_mkey_check(3): "actual" is computed from the data, "expected" is the value of the field. */
static bool keep_error(const struct block_stage *stage, const struct signature_error *error)
{
	const struct signature_domain *input = stage->signature.input;
	enum mlx5dv_mkey_err_type type = error_type(error->syndrome);
	const struct mlx5dv_mkey_err kept = {
		.err_type = type,
		.err.sig = {.actual_value = field_number(error->expected, type, input),
			    .expected_value = field_number(error->found, type, input),
			    .offset = offset_in_message(stage, error->block)},
	};

	return mkey_keep_error(error->holder, &kept);
}

void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found)
{
	const struct signature_domain *input = stage->signature.input;
	bool man = stage->access.hca->settings.profile == PROFILE_MAN, news;
	struct signature_error error = {
		.holder = mkey_find(stage->access.hca, stage->map->number),
		.key = stage->map->number,
		.syndrome = syndrome_of(input, difference),
		.memory = stage->transmits,
		.transaction = input->transaction,
		.expected = expected,
		.found = found,
		.offset = (number + 1) * extended_block(input) - 1,
		.block = number,
	};
	const struct explain_subject subject = {.qpn = stage->access.qpn};
	struct refusal why;

	if (!error.holder || stage->access.repeated)
		return;
	news = man ? keep_error(stage, &error) : mkey_claim_error_report(error.holder);
	if (news) {
		why = explain_error(stage, &error);
		explain_make(stage->access.hca, &subject, why.rule, why.args, EXPLAIN_ARGS);
	}
	if (stage->access.observer && (man || news))
		stage->access.observer->report(stage->access.observer, &error);
}
