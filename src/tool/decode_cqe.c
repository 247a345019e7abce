/* SPDX-License-Identifier: BSD-2-Clause */
/* CQEs (mlx5-formats 3.2 to 3.5). */
#include <infiniband/mlx5dv.h>

#include "tool/decoder.h"

#define INLINE_32 1 /* mlx5-formats 3.2; with 64 bytes the data comes first */

static enum part cqe_part(const uint8_t *cqe)
{
	switch (part_get(cqe, PART_CQE, "opcode")) {
	case MLX5_CQE_REQ_ERR:
	case MLX5_CQE_RESP_ERR:
		return PART_CQE_ERROR;
	case MLX5_CQE_SIG_ERR:
		return PART_CQE_SIGNATURE;
	default:
		return part_get(cqe, PART_CQE, "format") == INLINE_32 ? PART_CQE_INLINE : PART_CQE;
	}
}

void decode_cqes(struct decoder *decoder, uint32_t cqe_size)
{
	const uint32_t bytes = part_infos[PART_CQE].bytes;

	if (!decoder_left(decoder))
		decoder_fault(decoder, "no bytes were given");
	while (decoder_left(decoder)) {
		decoder_note(decoder, "CQE at byte %zu", decoder->at);
		if (cqe_size > bytes && !decoder_take(decoder, PART_CQE_FRONT, 0))
			return;
		decoder_take(decoder, decoder_left(decoder) < bytes ? PART_CQE : cqe_part(decoder->bytes + decoder->at),
			     0);
	}
}
