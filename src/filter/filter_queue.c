/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of the filters, see filter_parts.h. */
#include <stdlib.h>

#include "core/epoch.h"
#include "core/thread_memory.h"
#include "filter/filter_parts.h"

/* A held frame is sent after this time even if none has overtaken it. */
#define HOLD_NS UINT64_C(1000000)
/* Delay after a link had no room. */
#define RETRY_NS UINT64_C(100000)

/* ---- lists ------------------------------------------------------------------------------------------------------ */

void frame_list_insert(struct frame_list *list, struct frame *before, struct frame *frame)
{
	frame->previous = before;
	frame->next = before ? before->next : list->first;
	*(frame->next ? &frame->next->previous : &list->last) = frame;
	*(before ? &before->next : &list->first) = frame;
}

void frame_list_remove(struct frame_list *list, struct frame *frame)
{
	*(frame->next ? &frame->next->previous : &list->last) = frame->previous;
	*(frame->previous ? &frame->previous->next : &list->first) = frame->next;
}

static void frame_list_insert_due(struct frame_list *list, struct frame *frame)
{
	struct frame *before = list->last;

	while (before && before->due_ns > frame->due_ns)
		before = before->previous;
	frame_list_insert(list, before, frame);
}

static void frame_unhold(struct frame *frame)
{
	struct frame **held;

	if (!frame->flow)
		return;
	for (held = &frame->flow->held; *held != frame; held = &(*held)->next_held)
		;
	*held = frame->next_held;
	frame->flow = NULL;
}

void frame_list_free(struct frame_list *list)
{
	struct frame *next;

	for (struct frame *frame = list->first; frame; frame = next) {
		next = frame->next;
		free(frame);
	}
	list->first = list->last = NULL;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static void filters_release_due(struct filters *filters, uint64_t now)
{
	struct frame *frame;

	while ((frame = filters->delayed.first) && frame->due_ns <= now) {
		frame_list_remove(&filters->delayed, frame);
		frame_unhold(frame);
		frame_list_insert(&filters->ready, filters->ready.last, frame);
	}
}

/* Arms the timer. Without a thread, delayed frames leave when another is sent. The lock is held. */
static void filters_wake_at(struct filters *filters, uint64_t time_ns)
{
	if (filters->timer_ns && filters->timer_ns <= time_ns)
		return;
	filters->timer_ns = timer_arm(&filters->hca->timers, &filters->timer, time_ns) ? 0 : time_ns;
}

static void filters_drain(void)
{
	THREAD_VARIABLE(struct run, run);

	epoch_enter();
	run_begin(run);
	deliver_queued(run);
	deliver_rest(run);
	epoch_leave();
}

void queue_timer(struct timer *timer)
{
	struct filters *filters = (struct filters *)((char *)timer - offsetof(struct filters, timer));

	pthread_mutex_lock(&filters->lock);
	filters->timer_ns = 0;
	pthread_mutex_unlock(&filters->lock);
	filters_drain();
}

void filters_flush(struct hca *hca)
{
	struct filters *filters = filters_of(hca);

	if (!filters)
		return;
	pthread_mutex_lock(&filters->lock);
	filters_release_due(filters, UINT64_MAX);
	pthread_mutex_unlock(&filters->lock);
	filters_drain();
}

/* ---- adding and taking ------------------------------------------------------------------------------------------ */

static void frame_place(struct filters *filters, struct frame *frame, uint64_t now)
{
	if (frame->due_ns > now)
		frame_list_insert_due(&filters->delayed, frame);
	else
		frame_list_insert(&filters->ready, filters->ready.last, frame);
}

/* Counts one more passed frame of @flow. Releases frames that have waited only for this one. */
static void flow_overtake(struct filters *filters, struct fault_flow *flow, uint64_t now)
{
	struct frame **held = &flow->held, *frame;

	while ((frame = *held)) {
		if (--frame->overtake) {
			held = &frame->next_held;
			continue;
		}
		*held = frame->next_held;
		frame->flow = NULL;
		frame_list_remove(&filters->delayed, frame);
		frame->due_ns = flow->last_due_ns;
		frame_place(filters, frame, now);
	}
}

static void frame_hold(struct filters *filters, struct frame *frame, struct fault_flow *flow, uint32_t others,
		       uint64_t now)
{
	frame->flow = flow;
	frame->overtake = others;
	frame->next_held = flow->held;
	flow->held = frame;
	frame->due_ns = now + HOLD_NS;
	frame_list_insert_due(&filters->delayed, frame);
}

void queue_add(struct filters *filters, struct frame *frame, const struct fault_verdict *verdict, uint64_t now)
{
	struct fault_flow *flow = verdict->flow;

	filters_release_due(filters, now);
	filters->bytes += frame->length;
	if (flow && verdict->delay_ns) {
		uint64_t due = now + verdict->delay_ns;

		flow->last_due_ns = due > flow->last_due_ns ? due : flow->last_due_ns;
	}
	if (flow && verdict->overtake) {
		frame_hold(filters, frame, flow, verdict->overtake, now);
	} else {
		frame->due_ns = flow ? flow->last_due_ns : 0;
		frame_place(filters, frame, now);
		if (flow)
			flow_overtake(filters, flow, now);
	}
	if (filters->delayed.first)
		filters_wake_at(filters, filters->delayed.first->due_ns);
}

struct frame *queue_take(struct filters *filters, uint64_t now)
{
	struct frame *frame;

	filters_release_due(filters, now);
	frame = filters->ready.first;
	if (frame) {
		frame_list_remove(&filters->ready, frame);
		filters->bytes -= frame->length;
	} else if (filters->delayed.first) {
		filters_wake_at(filters, filters->delayed.first->due_ns);
	}
	return frame;
}

void queue_put_back(struct filters *filters, struct frame *frame, uint64_t now)
{
	frame_list_insert(&filters->ready, NULL, frame);
	filters->bytes += frame->length;
	filters_wake_at(filters, now + RETRY_NS);
}
