/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What changes keys on the data path: UMR WQEs (configure, bind, local invalidate are all of that form) and the
 * invalidation that a message carries. Executed by the requester (responder) of a QP, inside an epoch section.
 */
#ifndef SOFTHCA_MKEY_UMR_H
#define SOFTHCA_MKEY_UMR_H

#include "mkey/walk.h"

/* Bits of umr_ctrl.flags as the device reads them (mlx5-formats 1.8 and 6, point 33). */
enum umr_flags {
	UMR_INLINE = 0x80,
	UMR_MUST_BE_LIVE = 0x40,
	UMR_MUST_BE_FREE = 0x20,
	UMR_TRANSLATION_OFFSET = 0x10,
	UMR_CHECK_QPN = 0x08,
};

/**
 * Executes a UMR WQE. @wqe: all of it, host copy in one piece, beginning with the control segment; @bytes its length.
 * @access: domain and QP of the poster.
 * Returns 0, or -EACCES / -EINVAL with @why filled and the key unchanged (mlx5-formats 1.8: any failure completes
 * with MW_BIND_ERR). @revoked: set if the request took rights back; it may complete once that epoch stamp has passed.
 */
int umr_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, uint64_t *revoked,
		struct refusal *why);

/** Executes a SET_PSV WQE (mlx5-formats 1.13), as umr_execute(). */
int set_psv_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, struct refusal *why);

/**
 * Performs a remote invalidation (SEND with invalidate), if kind, tag, domain and QP allow it. Returns 0, or -EACCES with
 * @why.
 */
int invalidate_execute(const struct walk_access *access, uint32_t rkey, struct refusal *why);

#endif
