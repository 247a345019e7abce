/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of keys on the data path: UMR WQEs (configure, bind and local invalidate all have that form), and invalidation by a
 * received message. Executed by the requester or responder of a QP, inside an epoch section.
 */
#ifndef SOFTHCA_MKEY_UMR_H
#define SOFTHCA_MKEY_UMR_H

#include "mkey/walk.h"

/* Bits of umr_ctrl.flags (mlx5-formats 1.8 and 6, point 33). */
enum umr_flags {
	UMR_INLINE = 0x80,
	UMR_MUST_BE_LIVE = 0x40,
	UMR_MUST_BE_FREE = 0x20,
	UMR_TRANSLATION_OFFSET = 0x10,
	UMR_CHECK_QPN = 0x08,
};

/**
 * Executes a UMR WQE. @wqe: the whole WQE, a contiguous copy of @bytes that begins with the control segment. @access: domain
 * and QP of the poster. Returns 0, or -EACCES or -EINVAL with @why filled and the key unchanged (mlx5-formats 1.8: any failure
 * completes with MW_BIND_ERR). @revoked: set to an epoch stamp if the request revoked rights; it may complete once that stamp
 * has passed.
 */
int umr_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, uint64_t *revoked,
		struct refusal *why);

/** Executes a SET_PSV WQE (mlx5-formats 1.13). Parameters and result as for umr_execute(). */
int set_psv_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, struct refusal *why);

/**
 * Performs a remote invalidation (SEND with invalidate) if kind, tag, domain and QP allow it. Returns 0, or -EACCES with @why
 * filled.
 */
int invalidate_execute(const struct walk_access *access, uint32_t rkey, struct refusal *why);

#endif
