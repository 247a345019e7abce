/* SPDX-License-Identifier: BSD-2-Clause */
/* Warns of rkeys that are sent before the completion of their window's bind was polled: ibv_bind_mw(3), NOTES. */
#include <string.h>

#include "lint/state.h"

/* Bytes searched in each piece: an rkey is at the beginning of a message. */
enum { LOOKED_AT = 4096 };

/* Searches the aligned words in either byte order. */
static bool has_rkey(const uint32_t *data, size_t words, uint32_t rkey)
{
	for (size_t i = 0; i < words; i++)
		if (data[i] == rkey || data[i] == __builtin_bswap32(rkey))
			return true;
	return false;
}

/* Warns of each bind of @other if a request of @state sends its rkey in @data. */
static void look_for_binds(struct lint_qp *state, const struct lint_send *send, const struct lint_qp *other,
			   const uint32_t *data, size_t words, const char *call)
{
	for (uint32_t number = other->first; number != other->end; number++) {
		uint32_t rkey = other->send[number & other->mask].bound_rkey;

		if (rkey && has_rkey(data, words, rkey))
			lint_warn_send(state, send, call, RULE_WINDOW_KEY_EARLY, FIGURES(rkey, other->qp->base.qp_num));
	}
}

static void binds_look(struct lint_qp *state, const struct lint_send *send, const uint32_t *data, size_t words,
		       const char *call)
{
	for (int i = 0; i < LINT_BUCKETS; i++)
		for (const struct lint_qp *other = lint.qps[i]; other; other = other->next)
			/* On one queue pair the request is executed after the bind, so the rkey is valid. */
			if (other != state && other->binds)
				look_for_binds(state, send, other, data, words, call);
}

void lint_window_look(struct lint_qp *state, const struct lint_send *send, const char *call)
{
	uint32_t data[LOOKED_AT / sizeof(uint32_t)];

	for (uint32_t i = 0; i < send->pieces; i++) {
		const struct lint_piece *piece = &send->piece[i];
		size_t size = piece->length < LOOKED_AT ? piece->length & ~3u : LOOKED_AT;

		if (piece->sum && lint_memory_read(piece->memory, data, size))
			binds_look(state, send, data, size / sizeof(uint32_t), call);
	}
	if (send->inlined)
		binds_look(state, send, send->inline_words, send->inlined, call);
}
