/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Type 1 windows: the driver builds the WR and chooses a new rkey (mlx5-formats 4.12). The inline wrapper of verbs.h
 * has checked the type of the window and the PD of the MR.
 */
#include <errno.h>

#include "core/settings.h"
#include "explain/explain.h"
#include "verbs/object/lint.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/object/observed.h"

static int bind_check_man(struct ibv_qp *qp, unsigned int send_flags, unsigned int access)
{
	const unsigned int send_known = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
	/*
	 * The structure says "Use ibv_access_flags"; the list below it has the remote ones and ZERO_BASED. Programs
	 * pass the flags that they registered with, and rdma-core's own tests pass LOCAL_WRITE: accepted without
	 * effect.
	 */
	const unsigned int access_known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
					  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
	enum ibv_qp_type type = to_user_qp(qp)->type;
	struct hca *hca = hca_of_context(qp->context);

	if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_XRC_SEND)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_QP_TYPE, FIGURES(type));
	if (send_flags & ~send_known)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_SEND_FLAGS,
				    FIGURES(send_flags, send_known));
	if (access & ~access_known)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_ACCESS,
				    FIGURES(access, access_known));
	return 0;
}

/* libmlx5 leaves the QP type to the device and ignores unknown flags (mlx5-formats 4.12). */
static int bind_check_connectx(struct ibv_qp *qp, unsigned int access)
{
	struct hca *hca = hca_of_context(qp->context);

	if (access & IBV_ACCESS_ZERO_BASED)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_ZERO_BASED, FIGURES(access));
	return 0;
}

static int bind_check_region(struct ibv_qp *qp, struct ibv_mr *base)
{
	const struct user_mr *mr = to_user_mr(base);
	struct hca *hca = hca_of_context(qp->context);

	/* The device checks the lkey of any other pointer. */
	if (!mr || !object_alive(base))
		return 0;
	if (mr->kind == MR_NULL)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, ENOTSUP, RULE_BIND_NULL_MR, FIGURES(base->lkey));
	if (mr->imported)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, ENOTSUP, RULE_BIND_IMPORTED_MR,
				    FIGURES(base->lkey));
	if (mr->access & IBV_ACCESS_ZERO_BASED)
		return refuse_on_qp(hca, "ibv_bind_mw", qp->qp_num, EINVAL, RULE_BIND_ZERO_BASED_MR,
				    FIGURES(base->lkey));
	return 0;
}

int softhca_ibv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	struct ibv_send_wr *bad_wr;
	struct ibv_send_wr wr = {
		.wr_id = mw_bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = mw_bind->send_flags,
		.bind_mw = {.mw = mw, .bind_info = mw_bind->bind_info},
	};
	unsigned int access = mw_bind->bind_info.mw_access_flags;
	bool man;
	int err;

	if (object_refused("ibv_bind_mw", NULL, qp) || object_refused("ibv_bind_mw", NULL, mw))
		return errno;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	man = hca_settings(hca_of_context(qp->context))->profile == PROFILE_MAN;
	err = man ? bind_check_man(qp, mw_bind->send_flags, access) : bind_check_connectx(qp, access);
	if (!err && access & IBV_ACCESS_ZERO_BASED)
		LINT(profile_differs, hca_of_context(qp->context), "ibv_bind_mw", RULE_BIND_ZERO_BASED);
	if (!err)
		err = bind_check_region(qp, mw_bind->bind_info.mr);
	if (!err)
		err = (data_path_is_observed() ? post_send_observed : softhca_ibv_post_send)(qp, &wr, &bad_wr);
	/* ibv_bind_mw(3), NOTES: the rkey changes now. If the bind fails later, the program restores it. */
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
