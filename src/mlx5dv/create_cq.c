/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_create_cq(3): an extended CQ with mlx5 attributes, made where all CQs are made (verbs/queue/cq.c).
 */
#include "abi/entry_points.h"
#include "verbs/object/objects.h"

struct ibv_cq_ex *softhca_mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
					   struct mlx5dv_cq_init_attr *dv)
{
	return user_cq_create(context, attr, dv, true);
}
