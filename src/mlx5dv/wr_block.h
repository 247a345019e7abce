/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encodes block attributes in a UMR work request (mlx5-formats 4.4, 4.5), with the error count that re-enables error
 * reports, and the SET_PSV work requests after it. Under sq.lock.
 *
 * A setter that succeeds stores its attributes in the key and sets signature_state or crypto_state to BLOCK_UPDATED; if
 * it was BLOCK_UPDATED before, this is a second call in the same work request. The next mlx5dv_wr_mkey_configure(3) of
 * the key sets it to BLOCK_SET. A failed or aborted chain leaves the states as they are
 * (mlx5dv_wr_set_mkey_sig_block(3), Notes).
 */
#ifndef SOFTHCA_MLX5DV_WR_BLOCK_H
#define SOFTHCA_MLX5DV_WR_BLOCK_H

#include "mlx5dv/bsf.h"
#include "verbs/memory/signature.h"
#include "verbs/post/wqe_builder.h"

/** Updates the states at the start of a configuration. @conf_flags: enum mlx5dv_mkey_conf_flags. */
void block_begin(struct user_mkey *mkey, uint32_t conf_flags);

/**
 * Completes the UMR @wqe of builder.mkey: writes the BSFs after the translation entries, and their bits in the UMR
 * control segment, the mkey context and builder.umr_mask. @bsf_bytes: of the BSFs; @set_psvs: SET_PSVs must follow. On
 * failure latches ENOMEM (no room in the WQE) or EINVAL and returns false.
 */
bool block_finish(struct user_qp *qp, struct wqe wqe, uint32_t *bsf_bytes, bool *set_psvs);

/**
 * Builds a SET_PSV for each domain with a signature, memory first, with the current wr_id and wr_flags. Latches ENOMEM
 * for a full queue.
 */
void block_set_psvs(struct user_qp *qp, const struct key_signature *signature);

/**
 * Implements dv_builders->chain_dropped() (verbs/object/objects.h): later WQEs rearm the error reports that the dropped
 * ones would have rearmed.
 */
void block_chain_dropped(struct user_qp *qp);

/**
 * Encodes the encryption of @mkey, which has one, with the tweak in the byte order of @qp's device. Returns 0, or
 * -EINVAL if the order of encryption is impossible with signatures in both domains. (mlx5dv/wr_crypto.c)
 */
int crypto_bsf(const struct user_qp *qp, const struct user_mkey *mkey, uint8_t bsf[BSF_BYTES]);

#endif
