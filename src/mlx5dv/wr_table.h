/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table of mlx5dv builders of a QP, registered with the driver by wr_table.c (struct dv_builders,
 * verbs/object/objects.h).
 */
#ifndef SOFTHCA_MLX5DV_WR_TABLE_H
#define SOFTHCA_MLX5DV_WR_TABLE_H

#include "verbs/object/objects.h"

/** Implements dv_builders->table_fill() (verbs/object/objects.h). */
int dv_wr_table_fill(struct user_qp *qp, uint64_t dv_send_ops);

#endif
