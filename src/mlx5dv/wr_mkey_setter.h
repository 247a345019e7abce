/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the setters of an open UMR work request share (mlx5dv/wr_mkey.h). Under sq.lock, as all of the
 * builder.
 */
#ifndef SOFTHCA_MLX5DV_WR_MKEY_SETTER_H
#define SOFTHCA_MLX5DV_WR_MKEY_SETTER_H

#include "verbs/post/umr_segments.h"

/** True if a UMR work request is open. If not, latches EINVAL under @call unless an error is latched. */
bool mkey_setter_open(struct user_qp *qp, const char *call);

/** Counts a setter that succeeded; the last one announced closes the work request. */
void mkey_setter_done(struct user_qp *qp);

#endif
