/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_create_qp(3), ibv_create_qp_ex(3) and mlx5dv_create_qp(3) refuse before anything is made. Any
 * thread.
 */
#ifndef SOFTHCA_VERBS_QP_QP_CHECK_H
#define SOFTHCA_VERBS_QP_QP_CHECK_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct qp_type_info;

/** Name of the call that makes a QP with these attributes, for explanations. */
const char *qp_create_call(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv);

/**
 * Checks everything but capabilities and send_ops. @dv may be NULL; @type gets the row of the QP's type.
 * Returns 0, -EINVAL for what is wrong, -EOPNOTSUPP for what this device does not have.
 */
int qp_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv,
	     const struct qp_type_info **type);

#endif
