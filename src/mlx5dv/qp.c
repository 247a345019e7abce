/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on QPs: mlx5dv_dci_stream_id_reset(3), mlx5dv_map_ah_to_qp(3), mlx5dv_modify_qp_udp_sport(3),
 * mlx5dv_reserved_qpn_alloc(3).
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/post/inherited.h"

/* Order of the checks and errno values: libmlx5. */
int softhca_mlx5dv_dci_stream_id_reset(struct ibv_qp *base, uint16_t stream_id)
{
	struct user_qp *qp = to_user_qp(base);
	uint32_t errored = 0;
	struct hca *hca;

	if (object_refused("mlx5dv_dci_stream_id_reset", NULL, base))
		return errno;
	hca = hca_of_context(base->context);
	if (base->state != IBV_QPS_RTS)
		return refuse_on_qp(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EOPNOTSUPP, RULE_DV_STREAM_STATE,
				    FIGURES(qp->type, base->state));
	if (qp->dc_type != MLX5DV_DCTYPE_DCI)
		return refuse_on_qp(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EINVAL, RULE_DV_STREAM_NO_DCI,
				    FIGURES(qp->type));
	if (hca_dci_reset_stream(qp->device, stream_id, &errored))
		return refuse_on_qp(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EINVAL,
				    RULE_DV_STREAM_NOT_IN_ERROR, FIGURES(stream_id, errored));
	return 0;
}

/* A hint for congestion control, which the device does not need. A second mapping is ignored. */
int softhca_mlx5dv_map_ah_to_qp(struct ibv_ah *base, uint32_t qp_num)
{
	struct user_ah *ah = to_user_ah(base);

	if (object_refused("mlx5dv_map_ah_to_qp", NULL, base))
		return errno;
	if (__atomic_load_n(&ah->mapped, __ATOMIC_RELAXED))
		return 0;
	if (!hca_qp_exists(qp_num))
		return REFUSE(hca_of_context(base->context), "mlx5dv_map_ah_to_qp", EINVAL, RULE_DV_MAP_AH_QP, qp_num);
	__atomic_store_n(&ah->mapped, true, __ATOMIC_RELAXED);
	return 0;
}

/* Routers distinguish flows of RoCE v2 by the UDP source port. */
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
		return refuse_on_qp(hca_of_context(base->context), "mlx5dv_modify_qp_udp_sport", base->qp_num,
				    EOPNOTSUPP, RULE_DV_UDP_SPORT_QP, FIGURES(qp->type, state));
	hca_qp_set_udp_source_port(qp->device, udp_sport);
	return 0;
}

/* For connection managers, which need a number without a QP. */
int softhca_mlx5dv_reserved_qpn_alloc(struct ibv_context *context, uint32_t *qpn)
{
	return -hca_qpn_reserve(hca_of_context(context), qpn);
}

int softhca_mlx5dv_reserved_qpn_dealloc(struct ibv_context *context, uint32_t qpn)
{
	struct hca *hca = hca_of_context(context);

	if (hca_qpn_release(hca, qpn))
		return REFUSE(hca, "mlx5dv_reserved_qpn_dealloc", EINVAL, RULE_DV_QPN_NOT_RESERVED, qpn);
	return 0;
}
