/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builders and setters without keys, members of struct mlx5dv_qp_ex: raw WQEs, copies, addresses of DCIs. Contract:
 * mlx5dv_wr_post(3). The caller holds sq.lock, as for all of the builder.
 */
#ifndef SOFTHCA_MLX5DV_WR_SIMPLE_H
#define SOFTHCA_MLX5DV_WR_SIMPLE_H

#include "verbs/object/objects.h"

/**
 * Implements wr_raw_wqe: posts a WQE that the program built. @bytes: of any alignment. The length of the WQE is that in
 * `ds` of its control segment, but at least one segment. Latches ENOMEM if the queue has no room for it, or if it
 * exceeds the ring.
 */
void dv_wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *bytes);

/**
 * Implements wr_memcpy, for a QP created with it (user_qp.memcpy_buffer): copies @length bytes, 1 to LIMIT_MAX_MEMCPY.
 * Latches EINVAL for another length, ENOMEM if the queue is full.
 */
void dv_wr_memcpy(struct mlx5dv_qp_ex *dv, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey, uint64_t src_addr,
		  size_t length);

/** Implement wr_set_dc_addr and wr_set_dc_addr_stream: set the target of the open request of a DCI. */
void dv_wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key);
void dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key,
			      uint16_t stream_id);

#endif
