/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MMO WQEs. DMA, the only operation implemented, does not access the opaque buffer, in which others report, so its key
 * is not checked (mlx5-formats 6, point 48).
 */
#include "transport/requester/mmo.h"

#include <string.h>

#define OPMOD_DMA 1
#define LONGEST (UINT64_C(1) << 31) /* byte count 0 */

struct mmo_dma {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_data_seg opaque, source, destination;
};

static uint64_t dma_length(const struct mlx5_wqe_data_seg *segment)
{
	return segment->byte_count ? be32toh(segment->byte_count) : LONGEST;
}

static bool is_inline(const struct mlx5_wqe_data_seg *segment)
{
	return be32toh(segment->byte_count) & MLX5_INLINE_SEG;
}

static int dma_add(struct stream *stream, const struct walk_access *access, uint8_t right,
		   const struct mlx5_wqe_data_seg *segment, struct refusal *why)
{
	stream_begin(stream, access, right);
	return stream_add_key(stream, be32toh(segment->lkey), be64toh(segment->addr), dma_length(segment), why);
}

static int dma_check(const struct wqe *wqe, struct mmo_dma *dma, struct refusal *why)
{
	if (wqe->opmod != OPMOD_DMA) {
		*why = (struct refusal){RULE_MMO_OPERATION, {wqe->opmod}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if (wqe->size < sizeof(*dma)) {
		*why = (struct refusal){RULE_WQE_SHORT, {wqe->opcode, wqe->size, sizeof(*dma)}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	memcpy(dma, wqe->bytes, sizeof(*dma));
	if (is_inline(&dma->source) || is_inline(&dma->destination)) {
		*why = (struct refusal){RULE_MMO_INLINE,
					{be32toh(dma->source.byte_count), be32toh(dma->destination.byte_count)}};
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
	if (dma->source.byte_count != dma->destination.byte_count) {
		*why = (struct refusal){RULE_MMO_LENGTHS, {dma_length(&dma->source), dma_length(&dma->destination)}};
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	}
	return 0;
}

int mmo_prepare(const struct wqe *wqe, const struct walk_access *access, struct stream *sink, struct stream *source,
		struct refusal *why)
{
	struct mmo_dma dma;
	int syndrome = dma_check(wqe, &dma, why);

	if (syndrome)
		return syndrome;
	if (dma_add(source, access, RIGHT_LOCAL_READ, &dma.source, why) ||
	    dma_add(sink, access, RIGHT_LOCAL_WRITE, &dma.destination, why))
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	return 0;
}
