/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_alloc_dm(3): device memory by type. The device has the general kind only (MEMIC), which is
 * ibv_alloc_dm(3)'s.
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

struct ibv_dm *softhca_mlx5dv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr,
				       struct mlx5dv_alloc_dm_attr *dv)
{
	struct hca *hca = hca_of_context(context);

	if (dv->type != MLX5DV_DM_TYPE_MEMIC) {
		errno = REFUSE(hca, "mlx5dv_alloc_dm", EOPNOTSUPP, RULE_DV_DEVICE_MEMORY_TYPE, dv->type);
		return NULL;
	}
	if (dv->comp_mask) {
		errno = REFUSE(hca, "mlx5dv_alloc_dm", EINVAL, RULE_DV_DEVICE_MEMORY_ATTR, dv->comp_mask);
		return NULL;
	}
	return softhca_ibv_alloc_dm(context, attr);
}
