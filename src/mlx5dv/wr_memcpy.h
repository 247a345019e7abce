/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy work requests. Under sq.lock, as all of the builder. */
#ifndef SOFTHCA_MLX5DV_WR_MEMCPY_H
#define SOFTHCA_MLX5DV_WR_MEMCPY_H

#include "verbs/object/objects.h"

/**
 * Member wr_memcpy of struct mlx5dv_qp_ex, of a QP created for it (user_qp.memcpy_buffer). Copies @length bytes, 1 to
 * LIMIT_MAX_MEMCPY. Latches EINVAL for another length, ENOMEM if the queue is full.
 */
void dv_wr_memcpy(struct mlx5dv_qp_ex *dv, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey, uint64_t src_addr,
		  size_t length);

#endif
