/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/queue/cq.c and verbs/qp/qp.c interpret the attributes of CQs and QPs. */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "verbs/post/wqe_builder.h"

bool softhca_mlx5dv_is_supported(struct ibv_device *device)
{
	/* Compares hca without dereferencing it, because the device may belong to another library. */
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

struct ibv_cq_ex *softhca_mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
					   struct mlx5dv_cq_init_attr *dv)
{
	return user_cq_create(context, attr, dv, true);
}

struct ibv_qp *softhca_mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
					struct mlx5dv_qp_init_attr *dv)
{
	return user_qp_create(context, attr, dv);
}

struct mlx5dv_qp_ex *softhca_mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
	return &to_user_qp_ex(ex)->dv;
}

/* Only the general type (MEMIC) exists, that of ibv_alloc_dm(3). */
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
