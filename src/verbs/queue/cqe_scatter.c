/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies data that a requester's CQE contains (mlx5-formats 3.2) to memory, which the device leaves to the driver. */
#include "verbs/queue/cqe.h"

#include <string.h>

#define UNIT 16

/*
 * The last segment of the WQE names the target: the device scatters to that segment only. It may wrap around the end of
 * the ring.
 */
static void last_segment(const struct send_queue *sq, const struct mlx5_cqe64 *cqe, struct mlx5_wqe_data_seg *segment)
{
	size_t ring = (size_t)sq->wqebb_count * MLX5_SEND_WQE_BB;
	size_t start = (size_t)(be16toh(cqe->wqe_counter) & (sq->wqebb_count - 1)) * MLX5_SEND_WQE_BB;
	struct mlx5_wqe_ctrl_seg control;

	memcpy(&control, (const uint8_t *)sq->buffer + start, sizeof(control));
	start += (size_t)((be32toh(control.qpn_ds) & 0x3f) - 1) * UNIT;
	memcpy(segment, (const uint8_t *)sq->buffer + start % ring, sizeof(*segment));
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA ||
	       opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
}

void cqe_scatter(const struct send_queue *sq, const struct mlx5_cqe64 *cqe)
{
	bool wide = cqe->op_own & MLX5_INLINE_SCATTER_64;
	const uint8_t *data = (const uint8_t *)(wide ? cqe - 1 : cqe);
	uint32_t bytes = cqe_byte_len(cqe), room = wide ? 64 : 32;
	struct mlx5_wqe_data_seg segment;
	uint8_t *target;

	last_segment(sq, cqe, &segment);
	target = (uint8_t *)(uintptr_t)be64toh(segment.addr);
	if (bytes > room)
		bytes = room;
	if (!is_atomic(cqe_send_opcode(cqe))) {
		memcpy(target, data, bytes);
		return;
	}
	/* The result of an atomic is in network order in the CQE, in host order in memory (mlx5-formats 1.5). */
	for (uint32_t i = 0; i < bytes; i++)
		target[i] = data[__BYTE_ORDER == __LITTLE_ENDIAN ? bytes - 1 - i : i];
}
