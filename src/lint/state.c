/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of queue pairs and regions, and which send requests are pending. See state.h. */
#include "lint/state.h"

struct lint lint;

/* ---- queue pairs ------------------------------------------------------------------------------------------------ */

static struct lint_qp **qp_bucket(uint32_t qp_num)
{
	return &lint.qps[qp_num % LINT_BUCKETS];
}

struct lint_qp *lint_qp_find(uint32_t qp_num)
{
	struct lint_qp *state = *qp_bucket(qp_num);

	while (state && state->qp->base.handle != qp_num)
		state = state->next;
	return state;
}

void lint_qp_add(struct lint_qp *state)
{
	struct lint_qp **link = qp_bucket(state->qp->base.handle);

	state->next = *link;
	*link = state;
}

void lint_qp_remove(struct lint_qp *state)
{
	struct lint_qp **link = qp_bucket(state->qp->base.handle);

	while (*link != state)
		link = &(*link)->next;
	*link = state->next;
}

/* ---- sends ------------------------------------------------------------------------------------------------------ */

/* Returns the moment when a poll of @cq (may be NULL) last returned a completion. */
static uint64_t moment_of(struct ibv_cq *cq)
{
	return cq ? to_user_cq(cq)->lint_moment : 0;
}

bool lint_send_is_new(const struct lint_qp *state, const struct lint_send *send)
{
	return send->moment > moment_of(state->qp->base.send_cq) && send->moment > moment_of(state->qp->base.recv_cq);
}

bool lint_send_is_open(const struct lint_qp *state, uint32_t number)
{
	const struct lint_send *send = &state->send[number & state->mask];

	return send->signalled && lint_send_is_new(state, send);
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static struct user_mr **mr_bucket(uint32_t lkey)
{
	return &lint.mrs[(lkey >> 8) % LINT_BUCKETS];
}

struct user_mr *lint_mr_find(uint32_t lkey)
{
	struct user_mr *mr = *mr_bucket(lkey);

	while (mr && mr->base.lkey != lkey)
		mr = mr->lint_next;
	return mr;
}

void lint_mr_add(struct user_mr *mr)
{
	struct user_mr **link = mr_bucket(mr->base.lkey);

	mr->lint_next = *link;
	*link = mr;
}

void lint_mr_remove(struct user_mr *mr)
{
	struct user_mr **link = mr_bucket(mr->base.lkey);

	while (*link && *link != mr)
		link = &(*link)->lint_next;
	if (*link)
		*link = mr->lint_next;
}
