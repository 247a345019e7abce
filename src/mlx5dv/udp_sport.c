/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_modify_qp_udp_sport(3): the UDP source port of a QP's RoCE v2 packets, by which routers tell flows
 * apart.
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/post/inherited.h"
#include "verbs/object/objects.h"

int softhca_mlx5dv_modify_qp_udp_sport(struct ibv_qp *base, uint16_t udp_sport)
{
	struct user_qp *qp = to_user_qp(base);
	enum ibv_qp_state state;

	if (object_refused("mlx5dv_modify_qp_udp_sport", NULL, base))
		return errno;
	if (qp->inherited)
		return refuse_inherited(qp, "mlx5dv_modify_qp_udp_sport", 0);
	state = hca_qp_state(qp->device);
	if ((qp->type != IBV_QPT_RC && qp->type != IBV_QPT_UC) || state != IBV_QPS_RTS)
		return REFUSE_QP(hca_of_context(base->context), "mlx5dv_modify_qp_udp_sport", base->qp_num, EOPNOTSUPP,
				 RULE_DV_UDP_SPORT_QP, qp->type, state);
	hca_qp_set_udp_source_port(qp->device, udp_sport);
	return 0;
}
