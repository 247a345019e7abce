/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_bind_mw(3): a type 1 window is bound by a WR that the driver makes up, with a new rkey that the driver
 * chooses. The inline wrapper of verbs.h has checked the window's type and the PD of the MR. mlx5-formats
 * 4.12.
 */
#include <errno.h>

#include "explain/explain.h"
#include "hca/settings.h"
#include "verbs/objects.h"
#include "verbs/ops.h"

static int check_bind(struct ibv_qp *qp, const struct ibv_mw_bind_info *info)
{
	struct hca *hca = hca_of_context(qp->context);
	const struct user_mr *mr = to_user_mr(info->mr);

	/* Profile man: ibv_bind_mw(3) offers zero-based windows. */
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED && hca_settings(hca)->profile == PROFILE_CONNECTX)
		return REFUSE_QP(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_ZERO_BASED, info->mw_access_flags);
	if (!mr)
		return 0;
	if (mr->kind == MR_NULL)
		return REFUSE_QP(hca, "ibv_bind_mw", qp->qp_num, ENOTSUP, RULE_BIND_NULL_MR, info->mr->lkey);
	if (mr->imported)
		return REFUSE_QP(hca, "ibv_bind_mw", qp->qp_num, ENOTSUP, RULE_BIND_IMPORTED_MR, info->mr->lkey);
	if (mr->access & IBV_ACCESS_ZERO_BASED)
		return REFUSE_QP(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_ZERO_BASED_MR, info->mr->lkey);
	return 0;
}

int softhca_ibv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	struct ibv_send_wr *bad_wr;
	struct ibv_send_wr wr = {
		.wr_id = mw_bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = mw_bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = mw_bind->bind_info},
	};
	int err = check_bind(qp, &mw_bind->bind_info);

	if (!err)
		err = softhca_ibv_post_send(qp, &wr, &bad_wr);
	/*
	 * ibv_bind_mw(3), NOTES: the rkey changes now; should the bind fail later, the program restores it.
	 */
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
