/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which devices are of the mlx5 class, and opening them with attributes: mlx5dv_is_supported(3),
 * mlx5dv_open_device(3).
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

bool softhca_mlx5dv_is_supported(struct ibv_device *device)
{
	/* Its hca is compared, never followed: this may be a device of another library. */
	for (size_t i = 0; device && i < hca_count(); i++)
		if (to_user_device(device)->hca == hca_device(i))
			return true;
	return false;
}

struct ibv_context *softhca_mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
	if (!softhca_mlx5dv_is_supported(device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr && (attr->comp_mask || attr->flags & ~(uint32_t)MLX5DV_CONTEXT_FLAGS_DEVX)) {
		errno = REFUSE(to_user_device(device)->hca, "mlx5dv_open_device", EINVAL, RULE_DV_OPEN_ATTR,
			       attr->flags, attr->comp_mask, MLX5DV_CONTEXT_FLAGS_DEVX);
		return NULL;
	}
	return softhca_ibv_open_device(device);
}
