/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5-formats 1.8 and 1.15. */
#include "verbs/post/umr_segments.h"

#include "core/limits.h"

enum {
	MASK_BIND = MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |
		    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
		    MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC,
	MASK_STATE = MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY,

	ENTRY_UNITS = 4, /* padded to 64 bytes */
};

static void umr_put_segments(struct wqe wqe, const struct mlx5_wqe_umr_ctrl_seg *ctrl,
			     const struct mlx5_wqe_mkey_context_seg *mkey)
{
	wqe_copy(wqe, UMR_CTRL_OFFSET, ctrl, sizeof(*ctrl));
	wqe_copy(wqe, UMR_MKEY_OFFSET, mkey, sizeof(*mkey));
}

uint8_t umr_rights(unsigned int access)
{
	uint8_t flags = 0;

	if (access & IBV_ACCESS_LOCAL_WRITE)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
	if (access & IBV_ACCESS_REMOTE_WRITE)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
	if (access & IBV_ACCESS_REMOTE_READ)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
	if (access & IBV_ACCESS_REMOTE_ATOMIC)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
	return flags;
}

/* @info: NULL invalidates the key. */
static uint32_t umr_put_bind(struct wqe wqe, bool type_2, uint32_t qpn, uint32_t rkey,
			     const struct ibv_mw_bind_info *info)
{
	bool bind = info;
	uint64_t mask = MASK_STATE | (bind ? MASK_BIND : 0) | (type_2 ? MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN : 0);
	struct mlx5_wqe_umr_ctrl_seg ctrl = {
		.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET,
		.klm_octowords = htobe16(bind ? ENTRY_UNITS : 0),
		.mkey_mask = htobe64(mask),
	};
	struct mlx5_wqe_mkey_context_seg mkey = {
		.qpn_mkey = htobe32((type_2 && bind ? qpn << 8 : UMR_MKEY_QPN_ANY) | (rkey & 0xff)),
	};

	/* IBTA: a type 2 window must be invalid to be bound, and only the QP that it is bound to can unbind it. */
	if (type_2)
		ctrl.flags |= bind ? MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE : MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
	if (!info) {
		mkey.free = MLX5_WQE_MKEY_CONTEXT_FREE;
		umr_put_segments(wqe, &ctrl, &mkey);
		return UMR_PAYLOAD_OFFSET;
	}

	mkey.access_flags = umr_rights(info->mw_access_flags);
	/* ibv_bind_mw(3): requests to a zero-based window contain an offset from its start. */
	mkey.start_addr = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : htobe64(info->addr);
	mkey.len = htobe64(info->length);
	umr_put_segments(wqe, &ctrl, &mkey);
	/* The maximum of 2 GiB is encoded as 0 (mlx5-formats 1.9). */
	wqe_set_data(wqe, UMR_PAYLOAD_OFFSET, info->addr, info->length & (LIMIT_MAX_BIND_LENGTH - 1),
		     info->mr ? info->mr->lkey : 0);
	wqe_zero(wqe, UMR_PAYLOAD_OFFSET + WQE_UNIT, (ENTRY_UNITS - 1) * WQE_UNIT);
	return UMR_BIND_BYTES;
}

uint32_t umr_bind(struct wqe wqe, enum ibv_mw_type type, uint32_t qpn, uint32_t rkey,
		  const struct ibv_mw_bind_info *info)
{
	bool type_2 = type == IBV_MW_TYPE_2;

	/* For a type 2 window length 0 is an error that the device detects (IBTA o10-37.2.40). */
	return umr_put_bind(wqe, type_2, qpn, rkey, info->length || type_2 ? info : NULL);
}

uint32_t umr_invalidate(struct wqe wqe)
{
	/* For every kind of key: free, tag 0, any QP (mlx5-formats 1.15). */
	return umr_put_bind(wqe, true, 0, 0, NULL);
}

int umr_bind_check(struct user_qp *qp, const char *call, const struct ibv_mw_bind_info *info)
{
	if (info->length > LIMIT_MAX_BIND_LENGTH)
		return refuse_on_qp(hca_of_context(qp->base.context), call, qp->base.qp_num, EOPNOTSUPP,
				    RULE_BIND_LENGTH, FIGURES(info->length, LIMIT_MAX_BIND_LENGTH));
	if (info->length && !info->mr)
		return refuse_on_qp(hca_of_context(qp->base.context), call, qp->base.qp_num, EINVAL, RULE_BIND_NO_MR,
				    FIGURES(info->length));
	return 0;
}
