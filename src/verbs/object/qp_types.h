/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver knows about each type of QP: which operations it has, how much of a WQE its addressing
 * takes. One table, read by creation, sizing, the builders' function tables and ibv_post_send. Constant data;
 * any thread.
 */
#ifndef SOFTHCA_VERBS_OBJECT_QP_TYPES_H
#define SOFTHCA_VERBS_OBJECT_QP_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct qp_type_info {
	const char *name;
	bool implemented;
	bool srq;               /* may have one, ibv_create_qp(3) */
	bool send_only;         /* nothing of a receive queue is looked at, nor made */
	uint16_t address_bytes; /* segments between the control segment and the operation's: AV, XRC */
	uint64_t send_ops;      /* IBV_QP_EX_WITH_* of the transport (mlx5-formats 4.2) */
	uint64_t assumed_ops;   /* those a QP is sized for when it names none (mlx5-formats 4.1) */
	uint64_t dv_send_ops;   /* MLX5DV_QP_EX_WITH_* of the transport */
};

/**
 * The row of @type; @dc selects among the DC types of IBV_QPT_DRIVER (0: none given). NULL for a value that
 * is no type.
 */
const struct qp_type_info *qp_type_info(enum ibv_qp_type type, enum mlx5dv_dc_type dc);

#endif
