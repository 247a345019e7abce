/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks before a QP is created. Any thread. */
#ifndef SOFTHCA_VERBS_QP_QP_CHECK_H
#define SOFTHCA_VERBS_QP_QP_CHECK_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct qp_type_info;

/** Returns the name of the call, for explanations. */
const char *qp_create_call(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv);

/**
 * Checks everything except capabilities and send_ops. @dv may be NULL; @type receives the row of the QP's type. Returns
 * 0, -EINVAL for invalid attributes, -EOPNOTSUPP for those that this device lacks.
 */
int qp_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv,
	     const struct qp_type_info **type);

#endif
