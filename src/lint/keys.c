/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns of mkey signatures that a dropped chain left in an unknown state, that were never checked, or that the last
 * transfer did not reach.
 */
#include "lint/state.h"

static void suspect_report(struct lint_qp *state)
{
	if (state->suspect)
		lint_warn_qp(state, "mlx5dv_wr_mkey_configure", RULE_KEY_AFTER_ABORT,
			     FIGURES(state->suspect->base.lkey));
	state->suspect = NULL;
}

void lint_key_configuring(struct user_qp *qp, struct user_mkey *mkey, uint32_t conf_flags)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	suspect_report(state);
	if (conf_flags & MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR)
		mkey->lint.unknown = false;
	else if (mkey->lint.unknown)
		state->suspect = mkey;
	queue_unlock(&lint.lock);
}

void lint_signature_set(struct user_qp *qp, struct user_mkey *mkey, uint8_t check_mask)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	mkey->lint.set = check_mask != 0;
	mkey->lint.unknown = false;
	if (state->suspect == mkey)
		state->suspect = NULL;
	if (state->set_count < LINT_KEYS)
		state->set[state->set_count++] = mkey;
	queue_unlock(&lint.lock);
}

void lint_chain_dropped(struct user_qp *qp)
{
	struct lint_qp *state = qp->lint;

	if (!state)
		return;
	queue_lock(&lint.lock);
	for (; state->set_count; state->set_count--)
		state->set[state->set_count - 1]->lint.unknown = true;
	state->suspect = NULL;
	queue_unlock(&lint.lock);
}

void lint_keys_posted(struct lint_qp *state)
{
	suspect_report(state);
	for (; state->set_count; state->set_count--) {
		struct user_mkey *mkey = state->set[state->set_count - 1];

		mkey->lint.checking |= mkey->lint.set;
	}
}

/* Only the last transfer before a check matters, because a later one may continue the block. The lock is not held. */
static void check_last_block(struct user_mkey *mkey, const char *call)
{
	struct hca_cut_block cut;

	if (mkey->lint.cut || !hca_mkey_cut_block(mkey->key, &cut))
		return;
	mkey->lint.cut = true;
	lint_warn_call(hca_of_context(mkey->pd->base.context), call, RULE_BLOCK_CUT,
		       FIGURES(mkey->base.lkey, cut.bytes, cut.block));
}

void lint_key_checked(struct user_mkey *mkey)
{
	check_last_block(mkey, "mlx5dv_mkey_check");
	queue_lock(&lint.lock);
	mkey->lint.checked = true;
	queue_unlock(&lint.lock);
}

static void chain_forget_key(struct lint_qp *state, const struct user_mkey *mkey)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state->set_count; i++)
		if (state->set[i] != mkey)
			state->set[kept++] = state->set[i];
	state->set_count = kept;
	if (state->suspect == mkey)
		state->suspect = NULL;
}

void lint_key_destroying(struct user_mkey *mkey)
{
	check_last_block(mkey, "mlx5dv_destroy_mkey");
	queue_lock(&lint.lock);
	for (int i = 0; i < LINT_BUCKETS; i++)
		for (struct lint_qp *state = lint.qps[i]; state; state = state->next)
			chain_forget_key(state, mkey);
	if (mkey->lint.checking && !mkey->lint.checked)
		lint_warn_call(hca_of_context(mkey->pd->base.context), "mlx5dv_destroy_mkey", RULE_SIGNATURE_UNCHECKED,
			       FIGURES(mkey->base.lkey));
	queue_unlock(&lint.lock);
}
