/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw work requests. Under sq.lock, as all of the builder. */
#ifndef SOFTHCA_MLX5DV_WR_RAW_H
#define SOFTHCA_MLX5DV_WR_RAW_H

#include "verbs/object/objects.h"

/**
 * Member wr_raw_wqe of struct mlx5dv_qp_ex. @bytes: a WQE of any alignment, as long as `ds` of its control segment
 * says, and at least that segment. Latches ENOMEM if the queue has no room for it, also for one that is larger than
 * the ring.
 */
void dv_wr_raw_wqe(struct mlx5dv_qp_ex *dv, const void *bytes);

#endif
