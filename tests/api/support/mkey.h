/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuring keys in the two ways that the library offers: mlx5dv_wr_mkey_configure(3) with setters, and
 * mlx5dv_wr_mr_list / mlx5dv_wr_mr_interleaved of mlx5dv_wr_post(3). The model of a layout is a plain loop that
 * computes the place of each byte of a key.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_MKEY_H
#define SOFTHCA_TESTS_API_SUPPORT_MKEY_H

#include "support/transfer.h"

enum way { BY_CONFIGURE, BY_MR_CALL };

enum {
	CONFIGURE_WR_ID = 0xc0f1,
	LAYOUT_BYTES = 1 << 18,
	KEY_ACCESS = IBV_ACCESS_LOCAL_WRITE | SIDE_REMOTE, /* all rights of a key */
};

struct layout {
	size_t length;
	uint32_t at[LAYOUT_BYTES]; /* offsets in the side's memory */
};

/** Computes the places of the bytes of a list of SGEs in the memory of @side. */
void layout_of_list(struct layout *layout, const struct side *side, uint16_t count, const struct ibv_sge *sge);
/** Entry e of repetition i begins at addr + i * (bytes_count + bytes_skip). */
void layout_of_interleaved(struct layout *layout, const struct side *side, uint32_t repeat, uint16_t count,
			   const struct mlx5dv_mr_interleaved *data);

/** Returns a view of the key as a request uses it, zero-based. @layout must outlive the view. */
struct view view_key(struct side *side, const struct mlx5dv_mkey *mkey, const struct layout *layout);

/** Opens a batch (ibv_wr_start(3)) with these wr_id and wr_flags. */
void batch_start(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags);
/** Requests of an open batch: WRITE of @source to @target, SEND of @source. */
void batch_write(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags, struct view source, struct view target);
void batch_send(struct endpoint *endpoint, uint64_t wr_id, unsigned int flags, struct view source);

/** Opens a batch with a signalled configuration of CONFIGURE_WR_ID for @setters setters, and no attributes. */
void configure_start(struct endpoint *endpoint, struct mlx5dv_mkey *mkey, uint8_t setters);
/** Completes the configuration and polls its success. */
#define configure_complete(endpoint) configure_complete_(HERE, endpoint)
void configure_complete_(struct place place, struct endpoint *endpoint);

/** Checks that the batch fails with @error and none of it was posted. */
#define expect_batch_refused(endpoint, error) expect_batch_refused_(HERE, endpoint, error)
void expect_batch_refused_(struct place place, struct endpoint *endpoint, int error);

/**
 * Configures @mkey by a signalled request of CONFIGURE_WR_ID in its own batch. Returns the result of
 * ibv_wr_complete(3); the caller polls the completion.
 */
int configure_list(struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey, uint32_t access, uint16_t count,
		   const struct ibv_sge *sge);
int configure_interleaved(struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey, uint32_t access,
			  uint32_t repeat, uint16_t count, const struct mlx5dv_mr_interleaved *data);

/**
 * As configure_list(), with KEY_ACCESS; must succeed, and polls the completion. @layout gets the model. Returns the
 * view.
 */
#define lay_list(endpoint, way, mkey, layout, count, sge) lay_list_(HERE, endpoint, way, mkey, layout, count, sge)
struct view lay_list_(struct place place, struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey,
		      struct layout *layout, uint16_t count, const struct ibv_sge *sge);
#define lay_interleaved(endpoint, way, mkey, layout, repeat, count, data)                                              \
	lay_interleaved_(HERE, endpoint, way, mkey, layout, repeat, count, data)
struct view lay_interleaved_(struct place place, struct endpoint *endpoint, enum way way, struct mlx5dv_mkey *mkey,
			     struct layout *layout, uint32_t repeat, uint16_t count,
			     const struct mlx5dv_mr_interleaved *data);

/** Returns an entry of an interleaved layout at @offset of the memory, with the lkey of side.mr. */
struct mlx5dv_mr_interleaved side_interleaved(const struct side *side, size_t offset, uint32_t bytes, uint32_t skip);

#endif
