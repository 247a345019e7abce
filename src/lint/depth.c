/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns of READs and atomics beyond the number that the peer grants. Within a process the responder never finds too
 * many, because each request is answered at once.
 */
#include "lint/state.h"

static bool takes_resource(const struct lint_send *send)
{
	return send->opcode == MLX5_OPCODE_RDMA_READ || send->opcode == MLX5_OPCODE_ATOMIC_CS ||
	       send->opcode == MLX5_OPCODE_ATOMIC_FA || send->opcode == WQE_OPCODE_ATOMIC_WRITE;
}

void lint_depth_look(struct lint_qp *state, const struct lint_send *send, uint32_t number, const char *call)
{
	struct lint_other_end other;
	uint32_t out = 0;

	/* Without any responder resource the first request is refused. */
	if (!takes_resource(send) || !lint_other_end_find(state, &other) || !other.grants ||
	    state->end_attr.asks <= other.grants)
		return;
	for (uint32_t each = state->first; each != number + 1; each++) {
		const struct lint_send *earlier = &state->send[each & state->mask];

		out += takes_resource(earlier) && lint_send_is_new(state, earlier);
	}
	if (out > other.grants)
		lint_warn_qp(state, call, RULE_READS_NOT_GRANTED,
			     FIGURES(out, other.qp_num, other.grants, state->end_attr.asks));
}
