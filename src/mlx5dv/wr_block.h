/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a UMR work request says of a key's blocks (mlx5-formats 4.4, 4.5): which BSFs it carries, whether the key has
 * any, whether it reports signature errors again; and the SET_PSV work requests behind it. For mlx5dv/wr_mkey.c, under
 * sq.lock.
 *
 * How setters take part: one that succeeds stores its attributes in the key and sets signature_state, or crypto_state, to
 * BLOCK_UPDATED. It is a second call in the same work request if the state is BLOCK_UPDATED before. The next
 * mlx5dv_wr_mkey_configure(3) of the key makes it BLOCK_SET. A failed or aborted chain leaves the states as they are
 * (mlx5dv_wr_set_mkey_sig_block(3), Notes).
 */
#ifndef SOFTHCA_MLX5DV_WR_BLOCK_H
#define SOFTHCA_MLX5DV_WR_BLOCK_H

#include "mlx5dv/bsf.h"
#include "verbs/memory/signature.h"
#include "verbs/post/wqe_builder.h"

/** The states at the beginning of a configuration. @conf_flags: enum mlx5dv_mkey_conf_flags. */
void block_begin(struct user_mkey *mkey, uint32_t conf_flags);

/**
 * Completes the UMR @wqe of builder.mkey: BSFs behind the translation entries, and the bits that go with them in the UMR
 * control segment, the mkey context, and builder.umr_mask. @bsf_bytes gets the bytes of the BSFs, @set_psvs whether
 * SET_PSV work requests belong to it. Latches ENOMEM (no room in the WQE) or EINVAL and returns false.
 */
bool block_finish(struct user_qp *qp, struct wqe wqe, uint32_t *bsf_bytes, bool *set_psvs);

/**
 * Builds the SET_PSV of each domain of @signature that has one, memory first. Their wr_id and wr_flags are those at this
 * time. Latches ENOMEM for a full queue.
 */
void block_set_psvs(struct user_qp *qp, const struct key_signature *signature);

/**
 * The WQEs from the rollback position of the builder to the producer will not be posted: marks the keys whose signature errors they
 * would have rearmed, for later WQEs to do it.
 */
void block_chain_dropped(struct user_qp *qp);

/**
 * Writes the crypto BSF of @mkey, whose encryption is set, to @bsf, with the tweak in the byte order of @qp's device. Returns 0,
 * or -EINVAL if signatures in both domains exclude the order of encryption. (mlx5dv/wr_crypto.c)
 */
int crypto_bsf(const struct user_qp *qp, const struct user_mkey *mkey, uint8_t bsf[BSF_BYTES]);

#endif
