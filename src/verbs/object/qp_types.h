/* SPDX-License-Identifier: BSD-2-Clause */
/* Properties of each type of QP for the driver: constant. Any thread. */
#ifndef SOFTHCA_VERBS_OBJECT_QP_TYPES_H
#define SOFTHCA_VERBS_OBJECT_QP_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct qp_type_info {
	const char *name;
	bool implemented;
	bool srq;       /* may have an SRQ, ibv_create_qp(3) */
	bool send_only; /* attributes of receiving are neither checked nor used */
	/* address segments (AV, XRC) between the control segment and the operation's segments */
	uint16_t address_bytes;
	uint64_t send_ops;    /* IBV_QP_EX_WITH_* of the transport (mlx5-formats 4.2) */
	uint64_t assumed_ops; /* if a QP names none, it is sized for these (mlx5-formats 4.1) */
	uint64_t dv_send_ops; /* MLX5DV_QP_EX_WITH_* of the transport */
};

/** @dc selects among the DC types of IBV_QPT_DRIVER (0: none given). NULL for an unknown type. */
const struct qp_type_info *qp_type_info(enum ibv_qp_type type, enum mlx5dv_dc_type dc);

#endif
