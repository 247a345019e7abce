/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature errors, see report.h. */
#include "block/report.h"

#include "block/field.h"

/* mlx5dv_mkey_check(3): guard, then application tag, then reference tag. */
static uint16_t syndrome_of(const struct signature_domain *domain, uint64_t difference)
{
	if (difference & guard_bytes(domain))
		return SYNDROME_GUARD;
	return difference & FIELD_APP ? SYNDROME_APP_TAG : SYNDROME_REF_TAG;
}

static struct refusal explain_error(const struct signature_error *error)
{
	switch (error->syndrome) {
	case SYNDROME_GUARD:
		return (struct refusal){RULE_BLOCK_GUARD,
					{error->key, error->block, error->memory, error->expected, error->found,
					 error->offset}};
	case SYNDROME_APP_TAG:
		return (struct refusal){RULE_BLOCK_APP_TAG,
					{error->key, error->block, error->memory, error->expected, error->found,
					 error->offset}};
	default:
		return (struct refusal){RULE_BLOCK_REF_TAG,
					{error->key, error->block, error->memory, error->expected, error->found,
					 error->offset}};
	}
}

void signature_report(struct block_stage *stage, uint64_t number, uint64_t difference, uint64_t expected,
		      uint64_t found)
{
	const struct signature_domain *input = stage->signature.input;
	struct mkey *key = mkey_find(stage->access.hca, stage->map->number);
	struct signature_error error = {
		.key = stage->map->number,
		.syndrome = syndrome_of(input, difference),
		.memory = stage->transmits,
		.expected = expected,
		.found = found,
		.offset = (number + 1) * extended_block(input) - 1,
		.block = number,
	};
	const struct explain_subject subject = {.qpn = stage->access.qpn};
	struct refusal why;

	if (!key || __atomic_exchange_n(&key->signature_error, true, __ATOMIC_RELAXED))
		return;
	why = explain_error(&error);
	explain_make(stage->access.hca, &subject, why.rule, why.args, EXPLAIN_ARGS);
	if (stage->access.observer)
		stage->access.observer->report(stage->access.observer, &error);
}
