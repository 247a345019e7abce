/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_create_qp(3) and the way from a QP's ibv_qp_ex to its mlx5dv_qp_ex. Everything that the attributes
 * mean is decided where all QPs are made (verbs/qp/qp.c).
 */
#include "abi/entry_points.h"
#include "verbs/post/wqe_builder.h"

struct ibv_qp *softhca_mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
					struct mlx5dv_qp_init_attr *dv)
{
	return user_qp_create(context, attr, dv);
}

struct mlx5dv_qp_ex *softhca_mlx5dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
	return &to_user_qp_ex(ex)->dv;
}
