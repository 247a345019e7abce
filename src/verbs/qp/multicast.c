/* SPDX-License-Identifier: BSD-2-Clause */
/* The LID of a group is ignored on Ethernet (IBTA annex A16). */
#include <endian.h>
#include <errno.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/post/inherited.h"
#include "verbs/object/objects.h"

/* Returns an errno value. */
static int multicast_check(struct ibv_qp *qp, const union ibv_gid *gid, const char *call)
{
	struct hca *hca;

	if (object_refused(call, NULL, qp))
		return errno;
	if (to_user_qp(qp)->inherited)
		return refuse_inherited(to_user_qp(qp), call, 0);
	hca = hca_of_context(qp->context);
	if (!gid_is_multicast(gid))
		return REFUSE(hca, call, EINVAL, RULE_MCAST_GID, be64toh(gid->global.subnet_prefix),
			      be64toh(gid->global.interface_id));
	if (to_user_qp(qp)->type != IBV_QPT_UD)
		return REFUSE(hca, call, EINVAL, RULE_MCAST_QP, qp->qp_num, to_user_qp(qp)->type);
	return 0;
}

int softhca_ibv_attach_mcast(struct ibv_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct user_qp *qp = to_user_qp(base);
	int error = multicast_check(base, gid, "ibv_attach_mcast");

	(void)lid;
	if (error)
		return error;
	error = -hca_qp_attach(qp->device, gid);
	if (error == ENOSPC)
		return REFUSE(hca_of_context(base->context), "ibv_attach_mcast", ENOMEM, RULE_MCAST_FULL,
			      LIMIT_MAX_MCAST_QP_ATTACH, LIMIT_MAX_TOTAL_MCAST_QP_ATTACH);
	return error;
}

int softhca_ibv_detach_mcast(struct ibv_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	struct user_qp *qp = to_user_qp(base);
	int error = multicast_check(base, gid, "ibv_detach_mcast");

	(void)lid;
	if (error)
		return error;
	error = -hca_qp_detach(qp->device, gid);
	if (error == EINVAL)
		return REFUSE(hca_of_context(base->context), "ibv_detach_mcast", EINVAL, RULE_MCAST_NOT_ATTACHED,
			      base->qp_num);
	return error;
}
