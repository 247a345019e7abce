/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns of requests that read memory to which another request of their queue pair writes. Without a fence between them
 * an adapter may start the later request before the earlier one has written (mlx5-formats 1.3); softhca executes them
 * in order.
 */
#include "lint/state.h"

bool lint_send_writes(const struct lint_send *send)
{
	return send->pieces && send->piece[send->pieces - 1].written;
}

static bool pieces_overlap(const struct lint_piece *one, const struct lint_piece *other)
{
	return one->lkey == other->lkey && one->address < other->address + other->length &&
	       other->address < one->address + one->length;
}

static const struct lint_piece *piece_read(const struct lint_send *send, const struct lint_send *writer)
{
	for (uint32_t i = 0; i < send->pieces; i++)
		for (uint32_t j = 0; j < writer->pieces; j++)
			if (!send->piece[i].written && writer->piece[j].written &&
			    pieces_overlap(&send->piece[i], &writer->piece[j]))
				return &send->piece[i];
	return NULL;
}

/* Stops watching the pieces of @reader to which @writer writes (lint/memory.c). */
static void pieces_unwatch(struct lint_send *reader, const struct lint_send *writer)
{
	for (uint32_t i = 0; i < reader->pieces; i++)
		for (uint32_t j = 0; j < writer->pieces; j++)
			if (!reader->piece[i].written && writer->piece[j].written &&
			    pieces_overlap(&reader->piece[i], &writer->piece[j]))
				reader->piece[i].sum = 0;
}

/*
 * Returns true if @send writes only after earlier requests are acknowledged, as by the response of a READ or an atomic
 * (IBTA 9.7.5.1.2), and are not sent again. A copy does not wait.
 */
static bool writes_last(const struct lint_send *send)
{
	return lint_send_writes(send) && send->opcode != MLX5_OPCODE_MMO;
}

void lint_fence_look(struct lint_qp *state, struct lint_send *send, uint32_t number, const char *call)
{
	if (send->fenced)
		state->fence = number;
	if (!state->writers && !lint_send_writes(send))
		return;
	for (uint32_t before = state->first; before != number; before++) {
		struct lint_send *earlier = &state->send[before & state->mask];
		const struct lint_piece *piece = piece_read(send, earlier);

		if (piece)
			pieces_unwatch(send, earlier);
		if (writes_last(send))
			pieces_unwatch(earlier, send);
		if (piece && (int32_t)(before - state->fence) >= 0)
			lint_warn_send(state, send, call, RULE_TARGET_UNFENCED,
				       FIGURES(piece->address, piece->length, piece->lkey, earlier->opcode,
					       earlier->wr_id));
	}
}

static bool remote_overlaps(const struct lint_send *one, const struct lint_send *other)
{
	return one->rkey == other->rkey && (one->remote_address - other->remote_address < other->remote_length ||
					    other->remote_address - one->remote_address < one->remote_length);
}

/*
 * IBTA 10.8.3.3, table of ordering rules: without a fence, a WRITE or an atomic may be executed before an earlier READ.
 */
void lint_overtaking_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call)
{
	if (!send->remote_length || send->opcode == MLX5_OPCODE_RDMA_READ || !state->writers)
		return;
	for (uint32_t before = state->first; before != number; before++) {
		const struct lint_send *earlier = &state->send[before & state->mask];

		if (earlier->opcode != MLX5_OPCODE_RDMA_READ || (int32_t)(before - state->fence) < 0 ||
		    !lint_send_is_new(state, earlier) || !remote_overlaps(send, earlier))
			continue;
		lint_warn_send(state, send, call, RULE_READ_OVERTAKEN,
			       FIGURES(send->opcode, send->remote_address, send->remote_length, send->rkey,
				       earlier->wr_id));
		return;
	}
}
