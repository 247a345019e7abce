/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Window bind and local invalidate (mlx5-formats 1.15): the segments after the control segment. The caller holds
 * sq.lock and has reserved UMR_BIND_BYTES.
 */
#ifndef SOFTHCA_VERBS_POST_UMR_SEGMENTS_H
#define SOFTHCA_VERBS_POST_UMR_SEGMENTS_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "verbs/post/wqe_builder.h"

enum {
	UMR_CTRL_OFFSET = 16,     /* struct mlx5_wqe_umr_ctrl_seg, 48 bytes */
	UMR_MKEY_OFFSET = 64,     /* struct mlx5_wqe_mkey_context_seg, 64 bytes */
	UMR_PAYLOAD_OFFSET = 128, /* translation entries */
	UMR_BIND_BYTES = 192,     /* one entry, padded to 64 bytes */
	UMR_MKEY_QPN_ANY = 0xffffff00,
};

/** Converts @access (enum ibv_access_flags) to bits of the mkey context. Ignores flags that a key lacks. */
uint8_t umr_rights(unsigned int access);

/**
 * Writes a bind. Returns the bytes of the WQE, including the control segment.
 *
 * - @type: IBV_MW_TYPE_2 for ibv_wr_bind_mw
 * - @rkey: only the low byte is used
 * - @info: checked with umr_bind_check(); a length of 0 unbinds a type 1 window
 */
uint32_t umr_bind(struct wqe wqe, enum ibv_mw_type type, uint32_t qpn, uint32_t rkey,
		  const struct ibv_mw_bind_info *info);

/** Writes a local invalidate. Returns as umr_bind(). */
uint32_t umr_invalidate(struct wqe wqe);

/**
 * Returns the bytes for translation entries and BSFs of a UMR: the limit of inline data (hence 4 entries by default,
 * mlx5-formats 4.1), plus the address segment, which a DCI's UMR does not have.
 */
static inline uint32_t umr_payload_room(const struct user_qp *qp)
{
	return qp->sq.max_inline + (uint32_t)sizeof(struct mlx5_wqe_inl_data_seg) + qp->sq.address_bytes;
}

/**
 * Returns EOPNOTSUPP for more than 2 GiB, which one translation entry cannot encode; EINVAL for a length without an MR;
 * otherwise 0. Explains errors for @call.
 */
int umr_bind_check(struct user_qp *qp, const char *call, const struct ibv_mw_bind_info *info);

#endif
