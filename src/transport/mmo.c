/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MMO WQEs, see mmo.h. The opaque buffer is what compression and the like report in: DMA, the one operation there is,
 * does not touch it, so its key is not looked at (mlx5-formats 6, point 48).
 */
#include "transport/mmo.h"

#include <string.h>

#define FAILURE(why, syndrome, name, ...)                                                                              \
	(*(why) = (struct refusal){RULE_##name, {__VA_ARGS__}}, MLX5_CQE_SYNDROME_LOCAL_##syndrome##_ERR)

#define OPMOD_DMA 1
#define LONGEST (UINT64_C(1) << 31) /* what a byte count of 0 stands for */

struct mmo_dma {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_data_seg opaque, source, destination;
};

static uint64_t length_of(const struct mlx5_wqe_data_seg *segment)
{
	return segment->byte_count ? be32toh(segment->byte_count) : LONGEST;
}

static bool is_inline(const struct mlx5_wqe_data_seg *segment)
{
	return be32toh(segment->byte_count) & MLX5_INLINE_SEG;
}

static int add(struct stream *stream, const struct walk_access *access, uint8_t right,
	       const struct mlx5_wqe_data_seg *segment, struct refusal *why)
{
	stream_begin(stream, access, right);
	return stream_add_key(stream, be32toh(segment->lkey), be64toh(segment->addr), length_of(segment), why);
}

int mmo_prepare(const struct wqe *wqe, const struct walk_access *access, struct stream *sink, struct stream *source,
		struct refusal *why)
{
	struct mmo_dma dma;

	if (wqe->opmod != OPMOD_DMA)
		return FAILURE(why, QP_OP, MMO_OPERATION, wqe->opmod);
	if (wqe->size < sizeof(dma))
		return FAILURE(why, QP_OP, WQE_SHORT, wqe->opcode, wqe->size, sizeof(dma));
	memcpy(&dma, wqe->bytes, sizeof(dma));
	if (is_inline(&dma.source) || is_inline(&dma.destination))
		return FAILURE(why, QP_OP, MMO_INLINE, be32toh(dma.source.byte_count),
			       be32toh(dma.destination.byte_count));
	if (dma.source.byte_count != dma.destination.byte_count)
		return FAILURE(why, LENGTH, MMO_LENGTHS, length_of(&dma.source), length_of(&dma.destination));
	if (add(source, access, RIGHT_LOCAL_READ, &dma.source, why) ||
	    add(sink, access, RIGHT_LOCAL_WRITE, &dma.destination, why))
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	return 0;
}
