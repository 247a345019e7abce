/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of keys on the data path, by the requester or responder of a QP, inside an epoch section. Configure, bind and
 * local invalidate are UMR WQEs.
 */
#ifndef SOFTHCA_MKEY_UMR_H
#define SOFTHCA_MKEY_UMR_H

#include "mkey/walk.h"

/* umr_ctrl.flags (mlx5-formats 1.8 and 6, point 33). */
enum umr_flags {
	UMR_INLINE = 0x80,
	UMR_MUST_BE_LIVE = 0x40,
	UMR_MUST_BE_FREE = 0x20,
	UMR_TRANSLATION_OFFSET = 0x10,
	UMR_CHECK_QPN = 0x08,
};

/**
 * Executes a UMR WQE. @wqe: contiguous copy of all @bytes, control segment first. @access: of the poster. Returns 0, or
 * -EACCES or -EINVAL with @why and the key unchanged (mlx5-formats 1.8). @revoked: set if the request revoked rights: an
 * epoch stamp that must pass before it completes.
 */
int umr_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, uint64_t *revoked,
		struct refusal *why);

/** As umr_execute(), for a SET_PSV WQE (mlx5-formats 1.13). */
int set_psv_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, struct refusal *why);

/** Performs a remote invalidation (SEND with invalidate). Returns 0, or -EACCES with @why. */
int invalidate_execute(const struct walk_access *access, uint32_t rkey, struct refusal *why);

#endif
