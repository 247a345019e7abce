/* SPDX-License-Identifier: BSD-2-Clause */
/* The address setters of DCIs, members of struct mlx5dv_qp_ex. Contract: mlx5dv_wr_post(3). Under sq.lock. */
#ifndef SOFTHCA_MLX5DV_WR_DC_H
#define SOFTHCA_MLX5DV_WR_DC_H

#include <infiniband/mlx5dv.h>

void dv_wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key);
void dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key,
			      uint16_t stream_id);

#endif
