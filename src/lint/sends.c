/* SPDX-License-Identifier: BSD-2-Clause */
/* Send requests, from posting until their completion is polled. */
#include <unistd.h>

#include "lint/state.h"

static void send_forget(struct lint_qp *state, const struct lint_send *send)
{
	state->signalled -= send->signalled;
	state->writers -= lint_send_writes(send);
	if (!send->bound_rkey)
		return;
	state->binds--;
	lint.binds--;
}

void lint_sends_complete(struct lint_qp *state)
{
	uint32_t tail = __atomic_load_n(&state->qp->sq.tail, __ATOMIC_ACQUIRE);

	while (state->first != state->end && (int32_t)(tail - state->first) > 0) {
		const struct lint_send *send = &state->send[state->first++ & state->mask];

		if (lint_send_is_new(state, send))
			lint_memory_check(state, send);
		send_forget(state, send);
	}
}

/* Forgets all requests after a reset. */
static void sends_restart(struct lint_qp *state, uint32_t number)
{
	while (state->first != state->end)
		send_forget(state, &state->send[state->first++ & state->mask]);
	state->first = state->end = state->fence = number;
	state->unsignalled = 0;
}

static void note_signal(struct lint_qp *state, bool signalled, const char *call)
{
	state->unsignalled = signalled ? 0 : state->unsignalled + 1;
	if (state->unsignalled == state->qp->sq.max_post)
		lint_warn_qp(state, call, RULE_QUEUE_UNSIGNALED, FIGURES(state->unsignalled));
}

static void send_note(struct lint_qp *state, uint32_t number, const char *call)
{
	struct lint_send *send = &state->send[number & state->mask];
	const struct send_queue *sq = &state->qp->sq;

	lint_send_read(state->qp, sq->wqe_post[number & (sq->wqebb_count - 1)], send);
	send->moment = ++lint.moment;
	lint_memory_note(send);
	if (lint.binds)
		lint_window_look(state, send, call);
	lint_fence_look(state, send, number, call);
	lint_depth_look(state, send, number, call);
	lint_overtaking_look(state, send, number, call);
	lint_on_demand_look(state, send, call);
	state->end = number + 1;
	state->writers += lint_send_writes(send);
	state->signalled += send->signalled;
	state->binds += send->bound_rkey != 0;
	lint.binds += send->bound_rkey != 0;
	note_signal(state, send->signalled, call);
}

void lint_sends_posted(struct user_qp *qp, uint32_t count, const char *call)
{
	struct lint_qp *state = qp->lint;
	struct send_queue *sq = &qp->sq;
	uint32_t number = sq->head - count;

	if (!state)
		return;
	queue_lock(&lint.lock);
	lint_reads_tell();
	if (number == state->end)
		lint_sends_complete(state);
	else
		sends_restart(state, number);
	for (; number != sq->head; number++)
		send_note(state, number, call);
	lint_ends_look(state, call);
	lint_room_check(state, call);
	lint_keys_posted(state);
	queue_unlock(&lint.lock);
}

void lint_polled(struct user_cq *cq, uint32_t qp_num, bool last)
{
	struct lint_qp *state;

	queue_lock(&lint.lock);
	lint_reads_tell();
	state = lint_qp_find(qp_num);
	if (state) {
		lint_receives_complete(state);
		lint_sends_complete(state);
		lint_due_count(state);
	}
	if (last) {
		cq->lint_moment = ++lint.moment;
		cq->lint_poller = gettid();
	}
	queue_unlock(&lint.lock);
}
