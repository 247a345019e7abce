/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building a UMR work request (mlx5-formats 1.8): mlx5dv_wr_mkey_configure(3) opens it, setters fill it, the last
 * announced setter closes it. wr_mr_list and wr_mr_interleaved of mlx5dv_wr_post(3) do the same in one call. SET_PSV
 * work requests may follow for a key with signatures (mlx5dv/wr_block.h).
 *
 * The state is in user_qp.builder; sq.lock is held (ibv_wr_start(3)). Errors are latched for ibv_wr_complete(3).
 * Nothing allocates.
 */
#ifndef SOFTHCA_MLX5DV_WR_MKEY_H
#define SOFTHCA_MLX5DV_WR_MKEY_H

#include "verbs/object/objects.h"

/**
 * Opens a UMR work request for @num_setters setters; with 0 it is closed at once. Latches EOPNOTSUPP (no
 * IBV_SEND_INLINE, unknown attributes, foreign tag in lkey; these replace an earlier error) or ENOMEM (queue full), in
 * the order of mlx5-formats 4.4.
 */
void mkey_configure(struct user_qp *qp, const char *call, struct user_mkey *mkey, uint8_t num_setters,
		    const struct mlx5dv_mkey_conf_attr *attr);

/** Replaces all rights by @access_flags (enum ibv_access_flags). Latches EINVAL. */
void mkey_set_access(struct user_qp *qp, const char *call, uint32_t access_flags);

/**
 * Maps the @count pieces of @sge consecutively, without empty ones, since 0 in a translation entry means 2 GiB
 * (mlx5-formats 1.9). Latches ENOMEM (too many for the WQE or the key) or EINVAL.
 */
void mkey_set_list(struct user_qp *qp, const char *call, uint16_t count, const struct ibv_sge *sge);

/**
 * Maps the @count entries of @data in turn, @repeat_count times. The format stores bytes_count and bytes_count +
 * bytes_skip modulo 65536 (mlx5-formats 1.10): larger values are refused in profile man, truncated and explained in
 * connectx. Latches ENOMEM or EINVAL.
 */
void mkey_set_interleaved(struct user_qp *qp, const char *call, uint32_t repeat_count, uint16_t count,
			  const struct mlx5dv_mr_interleaved *data);

/** Returns true if a UMR work request is open. Otherwise latches EINVAL, unless an error is latched. */
bool mkey_setter_open(struct user_qp *qp, const char *call);

/** The last setter announced closes the work request. */
void mkey_setter_done(struct user_qp *qp);

/* Members of struct mlx5dv_qp_ex. */
void dv_wr_mkey_configure(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint8_t num_setters,
			  struct mlx5dv_mkey_conf_attr *attr);
void dv_wr_set_mkey_access_flags(struct mlx5dv_qp_ex *dv, uint32_t access_flags);
void dv_wr_set_mkey_layout_list(struct mlx5dv_qp_ex *dv, uint16_t num_sges, const struct ibv_sge *sge);
void dv_wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex *dv, uint32_t repeat_count, uint16_t num_interleaved,
				       const struct mlx5dv_mr_interleaved *data);
void dv_wr_set_mkey_sig_block(struct mlx5dv_qp_ex *dv, const struct mlx5dv_sig_block_attr *attr);
void dv_wr_mr_list(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags, uint16_t num_sges,
		   struct ibv_sge *sge);
void dv_wr_mr_interleaved(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags,
			  uint32_t repeat_count, uint16_t num_interleaved, struct mlx5dv_mr_interleaved *data);

#endif
