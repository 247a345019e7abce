/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_create_comp_channel(3), ibv_get_cq_event(3), ibv_ack_cq_events(3). */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "progress/substitute_poller.h"
#include "explain/explain.h"
#include "verbs/queue/cq.h"
#include "verbs/object/events.h"
#include "verbs/object/lint.h"

/* Implements event_queue.taken. A CQ cannot be destroyed until the program has acknowledged the event. */
static void comp_event_count(int type, void *object)
{
	struct user_cq *cq = object;

	(void)type;
	events_count(&cq->comp_events_taken, 1);
}

struct ibv_comp_channel *softhca_ibv_create_comp_channel(struct ibv_context *context)
{
	struct user_comp_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel)
		return NULL;
	error = event_queue_init(&channel->events);
	if (error) {
		free(channel);
		errno = REFUSE(hca_of_context(context), "ibv_create_comp_channel", -error, RULE_NO_DESCRIPTOR, -error);
		return NULL;
	}
	channel->events.taken = comp_event_count;
	channel->base.context = context;
	channel->base.fd = channel->events.fd;
	object_enter(&channel->base, &channel->alive, context);
	return &channel->base;
}

int softhca_ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct user_comp_channel *channel = to_user_comp_channel(base);
	int users;

	if (object_refused("ibv_destroy_comp_channel", NULL, base))
		return errno;
	users = __atomic_load_n(&base->refcnt, __ATOMIC_ACQUIRE);
	if (users)
		return refuse_ignorable(hca_of_context(base->context), "ibv_destroy_comp_channel", EBUSY,
					RULE_CHANNEL_IN_USE, FIGURES(users));
	object_leave(&channel->alive);
	substitute_poller_forget(&channel->events);
	event_queue_destroy(&channel->events);
	free(channel);
	return 0;
}

int softhca_ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct user_cq *taken;
	void *object;
	int type, error;

	LINT(channel_waiting, to_user_comp_channel(channel));
	error = substitute_poller_take_event(&to_user_comp_channel(channel)->events, &type, &object);
	if (error) {
		errno = -error;
		return -1;
	}
	taken = object;
	cq_event_taken(taken);
	LINT(cq_event_taken, taken);
	*cq = &taken->base;
	*cq_context = taken->base.cq_context;
	return 0;
}

void softhca_ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	uint32_t taken = __atomic_load_n(&((struct user_cq *)cq)->comp_events_taken, __ATOMIC_ACQUIRE);

	/* Before the acknowledgement is counted, because another thread may then destroy the CQ. */
	if (lint_is_on() && events_outstanding(cq->comp_events_completed + nevents, taken))
		lint_hooks->events_overacknowledged((struct user_cq *)cq, cq->comp_events_completed + nevents - taken);
	events_count(&cq->comp_events_completed, nevents);
}
