/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing, rights; wr_layout.c sets layouts. */
#include "core/settings.h"
#include "mlx5dv/wr_block.h"
#include "mlx5dv/wr_mkey.h"
#include "verbs/post/umr_segments.h"
#include "verbs/object/lint.h"

/* Those that drivers accept (mlx5-formats 4.4). */
#define ACCESS_OF_CONTEXT                                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
/*
 * The additional flags of the man page have no effect on a key: it is always zero-based, pinning was decided when its
 * memory was registered, windows cannot be bound to it, and the ordering is that of the CPU.
 */
#define ACCESS_OF_PAGE                                                                                                 \
	(ACCESS_OF_CONTEXT | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |  \
	 IBV_ACCESS_RELAXED_ORDERING)

#define MASK_ACCESS                                                                                                    \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |             \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

/* Replaces an earlier error (mlx5-formats 4.2, "which error wins"). */
static void wr_refuse_over(struct user_qp *qp, const char *call, int error, enum explain_rule rule,
			   const uint64_t *figures, size_t count)
{
	qp->builder.error = 0;
	wr_refuse(qp, call, error, rule, figures, count);
}

static void umr_finish(struct user_qp *qp)
{
	struct wr_builder *builder = &qp->builder;
	const struct user_mkey *mkey = builder->mkey;
	struct wqe wqe = wqe_current(&qp->sq);
	struct mlx5_wqe_umr_ctrl_seg *umr = wqe_unit(wqe, UMR_CTRL_OFFSET);
	uint32_t bsf_bytes = 0;
	bool set_psvs = false;

	if ((mkey->signature || mkey->crypto) && !block_finish(qp, wqe, &bsf_bytes, &set_psvs))
		return;
	umr->klm_octowords = htobe16(builder->payload_bytes / WQE_UNIT);
	umr->mkey_mask = htobe64(builder->umr_mask);
	builder->fence = MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE;
	builder->mkey = NULL;
	wr_finish(qp, UMR_PAYLOAD_OFFSET + builder->payload_bytes + bsf_bytes);
	if (set_psvs)
		block_set_psvs(qp, mkey->signature);
}

void mkey_setter_done(struct user_qp *qp)
{
	if (++qp->builder.mkey_setters_called == qp->builder.mkey_setters_announced)
		umr_finish(qp);
}

bool mkey_setter_open(struct user_qp *qp, const char *call)
{
	if (qp->builder.error)
		return false;
	if (qp->builder.setters_left & WR_SETTER_MKEY)
		return true;
	wr_refuse(qp, call, EINVAL, RULE_MKEY_SETTER_NOT_OPEN, FIGURES(0));
	return false;
}

void mkey_configure(struct user_qp *qp, const char *call, struct user_mkey *mkey, uint8_t num_setters,
		    const struct mlx5dv_mkey_conf_attr *attr)
{
	struct wr_builder *builder = &qp->builder;
	uint32_t lkey = mkey->base.lkey;
	uint8_t tag = lkey & 0xff;
	struct mlx5_wqe_umr_ctrl_seg *umr;
	struct mlx5_wqe_mkey_context_seg *context;
	struct wqe wqe;
	bool open;

	if (!(qp->ex.wr_flags & IBV_SEND_INLINE)) {
		wr_refuse_over(qp, call, EOPNOTSUPP, RULE_MKEY_CONFIGURE_INLINE, FIGURES(qp->ex.wr_flags));
		return;
	}
	if (attr->conf_flags & ~(uint32_t)MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR || attr->comp_mask) {
		wr_refuse_over(qp, call, EOPNOTSUPP, RULE_MKEY_CONFIGURE_ATTR,
			       FIGURES(attr->conf_flags, attr->comp_mask, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR));
		return;
	}
	open = wr_begin(qp, call, MLX5_OPCODE_UMR, htobe32(lkey), qp->sq.wqe_size, IBV_WC_DRIVER1, WR_SETTER_MKEY,
			&wqe);
	if (tag && !(mkey->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG)) {
		wr_refuse_over(qp, call, EOPNOTSUPP, RULE_MKEY_CONFIGURE_TAG, FIGURES(lkey, tag));
		return;
	}
	if (!open)
		return;

	/* A live key may be configured again (mlx5-formats 4.4). */
	wqe_zero(wqe, UMR_CTRL_OFFSET, UMR_PAYLOAD_OFFSET - UMR_CTRL_OFFSET);
	umr = wqe_unit(wqe, UMR_CTRL_OFFSET);
	umr->flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	context = wqe_unit(wqe, UMR_MKEY_OFFSET);
	context->qpn_mkey = htobe32(UMR_MKEY_QPN_ANY | tag);

	block_begin(mkey, attr->conf_flags);
	LINT(key_configuring, qp, mkey, attr->conf_flags);
	builder->mkey = mkey;
	builder->mkey_setters_announced = num_setters;
	builder->mkey_setters_called = 0;
	builder->layout_set = false;
	builder->access_set = false;
	builder->umr_mask = MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY;
	builder->payload_bytes = 0;
	if (!num_setters)
		umr_finish(qp);
}

void mkey_set_access(struct user_qp *qp, const char *call, uint32_t access_flags)
{
	bool connectx = hca_settings(hca_of_context(qp->base.context))->profile == PROFILE_CONNECTX;
	uint32_t known = connectx ? ACCESS_OF_CONTEXT : ACCESS_OF_PAGE;
	struct mlx5_wqe_mkey_context_seg *context;

	if (!mkey_setter_open(qp, call))
		return;
	if (access_flags & ~known) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_ACCESS_FLAGS, FIGURES(access_flags, known));
		return;
	}
	if (access_flags & ~ACCESS_OF_CONTEXT)
		LINT(profile_differs, hca_of_context(qp->base.context), call, RULE_MKEY_ACCESS_FLAGS);
	if (qp->builder.access_set) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_ACCESS_TWICE, FIGURES(0));
		return;
	}
	context = wqe_unit(wqe_current(&qp->sq), UMR_MKEY_OFFSET);
	context->access_flags = umr_rights(access_flags);
	qp->builder.umr_mask |= MASK_ACCESS;
	qp->builder.access_set = true;
	mkey_setter_done(qp);
}

void dv_wr_mkey_configure(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint8_t num_setters,
			  struct mlx5dv_mkey_conf_attr *attr)
{
	mkey_configure(to_user_qp_dv(dv), "mlx5dv_wr_mkey_configure", user_container_of(mkey, struct user_mkey, base),
		       num_setters, attr);
}

void dv_wr_set_mkey_access_flags(struct mlx5dv_qp_ex *dv, uint32_t access_flags)
{
	mkey_set_access(to_user_qp_dv(dv), "mlx5dv_wr_set_mkey_access_flags", access_flags);
}
