/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 1.8, 1.11, 1.13, 4.5. */
#include "mlx5dv/wr_block.h"

#include "core/settings.h"
#include "mlx5dv/wr_crypto.h"
#include "verbs/post/umr_segments.h"

enum {
	BSF_ENABLE = 1 << 30, /* in flags_pd of the mkey context */
	ERROR_COUNT_SHIFT = 26,
	ERROR_COUNT_MASK = 1,

	PSV_OFFSET = WQE_UNIT,
	PSV_WQE_BYTES = 2 * WQE_UNIT,
};

struct set_psv_segment {
	__be32 index;
	__be16 syndrome;
	__be16 reserved;
	__be64 transient;
};

static const char call[] = "mlx5dv_wr_mkey_configure";

static enum setting_PROFILE qp_profile(const struct user_qp *qp)
{
	return hca_settings(hca_of_context(qp->base.context))->profile;
}

static bool block_is_set(enum block_state state)
{
	return state == BLOCK_UPDATED || state == BLOCK_SET;
}

void block_begin(struct user_mkey *mkey, uint32_t conf_flags)
{
	if (mkey->crypto_state == BLOCK_UPDATED)
		mkey->crypto_state = BLOCK_SET;
	if (!mkey->signature)
		return;
	if (conf_flags & MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR) {
		mkey->signature->memory.kind = mkey->signature->wire.kind = SIGNATURE_NONE;
		mkey->signature_state = BLOCK_RESET;
	} else if (mkey->signature_state == BLOCK_UPDATED) {
		mkey->signature_state = BLOCK_SET;
	} else if (mkey->signature_state == BLOCK_RESET) {
		mkey->signature_state = BLOCK_INIT;
	}
}

/*
 * BSFs are replaced together: if a key has both and one changes, both are written, that of the signature even if it is
 * empty. To remove the signature of a key without encryption, the UMR instead marks it as having no BSF.
 */
static bool key_needs_bsf(const struct user_mkey *mkey)
{
	return (mkey->signature && mkey->signature_state == BLOCK_UPDATED) || mkey->crypto_state == BLOCK_UPDATED ||
	       (mkey->crypto && mkey->signature_state == BLOCK_RESET);
}

/* Latches an error and returns false. */
static bool umr_put_bsfs(struct user_qp *qp, struct wqe wqe, uint32_t *bytes)
{
	const struct user_mkey *mkey = qp->builder.mkey;
	uint32_t room = umr_payload_room(qp);
	uint32_t offset = UMR_PAYLOAD_OFFSET + qp->builder.payload_bytes;
	bool encrypted = block_is_set(mkey->crypto_state);
	uint8_t bsf[BSF_BYTES];

	*bytes = (mkey->signature ? BSF_BYTES : 0) + (encrypted ? BSF_BYTES : 0);
	if (qp->builder.payload_bytes + *bytes > room) {
		wr_refuse(qp, call, ENOMEM, RULE_MKEY_BSF_ROOM,
			  FIGURES(qp->builder.payload_bytes, *bytes, room, qp->sq.max_inline));
		return false;
	}
	if (mkey->length > UINT32_MAX) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_BSF_LENGTH, FIGURES(mkey->length, UINT32_MAX));
		return false;
	}
	if (mkey->signature) {
		if (signature_bsf(mkey->signature, qp_profile(qp), encrypted, bsf)) {
			wr_refuse(qp, call, EINVAL, RULE_SIG_COPY_MASK, FIGURES(mkey->signature->copy_mask));
			return false;
		}
		wqe_copy(wqe, offset, bsf, BSF_BYTES);
		offset += BSF_BYTES;
	}
	if (encrypted) {
		if (crypto_bsf(qp, mkey, bsf)) {
			wr_refuse(qp, call, EINVAL, RULE_MKEY_CRYPTO_TWO_SIGNATURES,
				  FIGURES(mkey->crypto->encrypt_on_tx, mkey->crypto->signature_order));
			return false;
		}
		wqe_copy(wqe, offset, bsf, BSF_BYTES);
	}
	return true;
}

/*
 * Sends the error count, without which the device reports only one error of a key (mlx5-formats 6, points 7 and 8).
 * Returns true if the UMR contains it.
 */
static bool umr_report_error_count(struct user_qp *qp, struct mlx5_wqe_mkey_context_seg *context)
{
	struct key_signature *signature = qp->builder.mkey->signature;
	uint32_t count;

	if (!signature || !__atomic_load_n(&signature->rearm, __ATOMIC_RELAXED))
		return false;
	/* Before the count is read: an error polled meanwhile is then reported next time. */
	__atomic_store_n(&signature->rearm, false, __ATOMIC_SEQ_CST);
	count = __atomic_load_n(&signature->error_count, __ATOMIC_RELAXED);
	qp->builder.umr_mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR;
	context->flags_pd |= htobe32((count & ERROR_COUNT_MASK) << ERROR_COUNT_SHIFT);
	return true;
}

bool block_finish(struct user_qp *qp, struct wqe wqe, uint32_t *bsf_bytes, bool *set_psvs)
{
	struct mlx5_wqe_mkey_context_seg *context = wqe_unit(wqe, UMR_MKEY_OFFSET);
	struct mlx5_wqe_umr_ctrl_seg *umr = wqe_unit(wqe, UMR_CTRL_OFFSET);
	struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe, 0);
	const struct user_mkey *mkey = qp->builder.mkey;
	bool reported;

	*bsf_bytes = 0;
	if (key_needs_bsf(mkey)) {
		if (!umr_put_bsfs(qp, wqe, bsf_bytes))
			return false;
		umr->bsf_octowords = htobe16(*bsf_bytes / WQE_UNIT);
		qp->builder.umr_mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE;
		context->flags_pd |= htobe32(BSF_ENABLE);
	} else if (!mkey->crypto && !block_is_set(mkey->signature_state)) {
		qp->builder.umr_mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE;
	}
	reported = umr_report_error_count(qp, context);
	*set_psvs = mkey->signature &&
		    (mkey->signature_state == BLOCK_UPDATED || (reported && mkey->signature_state == BLOCK_SET));
	/* The key is ready when its last PSV is set, so that request completes (mlx5-formats 4.5). */
	if (*set_psvs)
		ctrl->fm_ce_se &= (uint8_t)~MLX5_WQE_CTRL_CQ_UPDATE;
	return true;
}

/*
 * @more: another one follows and has the completion, since a configuration has one (mlx5dv_wr_mkey_configure(3),
 * USAGE). On a ConnectX with sq_sig_all both complete (mlx5-formats 4.5).
 */
static void umr_set_psv(struct user_qp *qp, uint32_t index, uint64_t transient, bool more)
{
	const struct set_psv_segment segment = {.index = htobe32(index), .transient = htobe64(transient)};
	unsigned int flags = qp->ex.wr_flags;
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct wqe wqe;
	bool open;

	if (more)
		qp->ex.wr_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	open = wr_begin(qp, call, MLX5_OPCODE_SET_PSV, 0, PSV_WQE_BYTES, IBV_WC_DRIVER1, 0, &wqe);
	qp->ex.wr_flags = flags;
	if (!open)
		return;
	ctrl = wqe_unit(wqe, 0);
	if (more && qp_profile(qp) == PROFILE_MAN)
		ctrl->fm_ce_se &= (uint8_t)~MLX5_WQE_CTRL_CQ_UPDATE;
	wqe_copy(wqe, PSV_OFFSET, &segment, sizeof(segment));
	qp->builder.fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
	wr_finish(qp, PSV_WQE_BYTES);
}

void block_set_psvs(struct user_qp *qp, const struct key_signature *signature)
{
	bool wire = signature->wire.kind != SIGNATURE_NONE;

	if (signature->memory.kind != SIGNATURE_NONE)
		umr_set_psv(qp, signature->memory_psv, signature_transient(&signature->memory), wire);
	if (wire)
		umr_set_psv(qp, signature->wire_psv, signature_transient(&signature->wire), false);
}

/*
 * Finds the UMRs of the chain in the ring, and restores only their unsent error counts. The program must set attributes
 * again (mlx5dv_wr_set_mkey_sig_block(3), Notes), but does not see counts.
 */
void block_chain_dropped(struct user_qp *qp)
{
	struct user_context *user = to_user_context(qp->base.context);
	uint32_t index = qp->builder.rollback_cur_post;

	queue_lock(&user->signatures.lock);
	while ((int32_t)(qp->sq.cur_post - index) > 0) {
		struct wqe wqe = wqe_at(&qp->sq, index);
		const struct mlx5_wqe_ctrl_seg *ctrl = wqe_unit(wqe, 0);
		const struct mlx5_wqe_umr_ctrl_seg *umr = wqe_unit(wqe, UMR_CTRL_OFFSET);
		uint32_t blocks = wqe_blocks((be32toh(ctrl->qpn_ds) & 0x3f) * WQE_UNIT);
		struct user_mkey *mkey;

		if ((be32toh(ctrl->opmod_idx_opcode) & 0xff) == MLX5_OPCODE_UMR &&
		    be64toh(umr->mkey_mask) & MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR) {
			mkey = signature_find(user, be32toh(ctrl->imm) >> 8);
			if (mkey)
				__atomic_store_n(&mkey->signature->rearm, true, __ATOMIC_RELEASE);
		}
		/* A raw WQE may have a wrong length (mlx5dv/wr_simple.c). */
		index += blocks ? blocks : 1;
	}
	queue_unlock(&user->signatures.lock);
}
