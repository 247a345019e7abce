/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of struct mlx5dv_qp_ex: raw WQEs, copies, addresses of DCIs. Contract: mlx5dv_wr_post(3). The caller holds
 * sq.lock.
 */
#ifndef SOFTHCA_MLX5DV_WR_SIMPLE_H
#define SOFTHCA_MLX5DV_WR_SIMPLE_H

#include "verbs/object/objects.h"

/**
 * @bytes: of any alignment. The length is that in `ds` of its control segment, but at least one segment. Latches ENOMEM
 * if the queue has no room for it, or if it exceeds the ring.
 */
void dv_wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *bytes);

/**
 * @length: 1 to LIMIT_MAX_MEMCPY. For a QP created with it (user_qp.memcpy_buffer). Latches EINVAL for another length,
 * ENOMEM if the queue is full.
 */
void dv_wr_memcpy(struct mlx5dv_qp_ex *dv, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey, uint64_t src_addr,
		  size_t length);

/** Set the target of the open request of a DCI. */
void dv_wr_set_dc_addr(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key);
void dv_wr_set_dc_addr_stream(struct mlx5dv_qp_ex *dv, struct ibv_ah *ah, uint32_t remote_dctn, uint64_t remote_dc_key,
			      uint16_t stream_id);

#endif
