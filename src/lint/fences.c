/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that read what a READ, an atomic or a copy before them brings. Without a fence an adapter may start them before that is
 * there (mlx5-formats 1.3); here they are executed one behind the other.
 */
#include "lint/state.h"

bool lint_send_writes(const struct lint_send *send)
{
	return send->pieces && send->piece[send->pieces - 1].written;
}

static bool overlaps(const struct lint_piece *one, const struct lint_piece *other)
{
	return one->lkey == other->lkey && one->address < other->address + other->length &&
	       other->address < one->address + one->length;
}

static const struct lint_piece *piece_read(const struct lint_send *send, const struct lint_send *writer)
{
	for (uint32_t i = 0; i < send->pieces; i++)
		for (uint32_t j = 0; j < writer->pieces; j++)
			if (!send->piece[i].written && writer->piece[j].written &&
			    overlaps(&send->piece[i], &writer->piece[j]))
				return &send->piece[i];
	return NULL;
}

void lint_fence_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call)
{
	if (send->fenced)
		state->fence = number;
	if (!state->writers)
		return;
	for (uint32_t before = state->first; before != number; before++) {
		const struct lint_send *writer = &state->send[before & state->mask];
		const struct lint_piece *piece = piece_read(send, writer);

		if (piece && (int32_t)(before - state->fence) >= 0)
			WARN_OF_SEND(state, send, call, RULE_TARGET_UNFENCED, piece->address, piece->length,
				     piece->lkey, writer->opcode, writer->wr_id);
	}
}
