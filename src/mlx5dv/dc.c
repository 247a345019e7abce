/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_dci_stream_id_reset(3), mlx5dv_map_ah_to_qp(3). Order and errno of the checks: those of libmlx5. */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

int softhca_mlx5dv_dci_stream_id_reset(struct ibv_qp *base, uint16_t stream_id)
{
	struct user_qp *qp = to_user_qp(base);
	uint32_t errored = 0;
	struct hca *hca;

	if (object_refused("mlx5dv_dci_stream_id_reset", NULL, base))
		return errno;
	hca = hca_of_context(base->context);
	if (base->state != IBV_QPS_RTS)
		return REFUSE_QP(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EOPNOTSUPP, RULE_DV_STREAM_STATE,
				 qp->type, base->state);
	if (qp->dc_type != MLX5DV_DCTYPE_DCI)
		return REFUSE_QP(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EINVAL, RULE_DV_STREAM_NO_DCI,
				 qp->type);
	if (hca_dci_reset_stream(qp->device, stream_id, &errored))
		return REFUSE_QP(hca, "mlx5dv_dci_stream_id_reset", base->qp_num, EINVAL, RULE_DV_STREAM_NOT_IN_ERROR,
				 stream_id, errored);
	return 0;
}

/* A hint for congestion control, of which there is none. A second mapping is ignored, whatever it says. */
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
