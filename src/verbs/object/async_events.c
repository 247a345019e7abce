/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_get_async_event(3), ibv_ack_async_event(3). */
#include <errno.h>
#include <time.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"
#include "verbs/object/events.h"
#include "verbs/object/lint.h"

/* Values chosen for speed. */
enum {
	/*
	 * ns between checks of a call that waits for events to be acknowledged: acknowledging is frequent and wakes no
	 * thread
	 */
	EVENT_LOOK_NS = 100000,
};

#define EVENTS_PATIENCE_NS 100000000

enum event_element { ELEMENT_PORT, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ, ELEMENT_WQ };

static enum event_element async_event_element(int type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	case IBV_EVENT_WQ_FATAL:
		return ELEMENT_WQ;
	default:
		return ELEMENT_PORT;
	}
}

void events_wait(struct ibv_context *context, const char *call, const char *kind, const uint32_t *taken,
		 const uint32_t *acknowledged)
{
	WITHOUT_CANCELLATION;
	const struct timespec pause = {0, EVENT_LOOK_NS};
	uint32_t looks = 0, got, done;

	for (;;) {
		got = __atomic_load_n(taken, __ATOMIC_ACQUIRE);
		done = __atomic_load_n(acknowledged, __ATOMIC_ACQUIRE);
		if (!events_outstanding(got, done))
			return;
		/* Waits first, because another thread may be about to acknowledge. */
		if (looks++ == EVENTS_PATIENCE_NS / EVENT_LOOK_NS)
			LINT(events_wait, context, call, kind, got - done);
		nanosleep(&pause, NULL);
	}
}

void count_async_event(int type, void *object)
{
	struct user_cq *cq = object;
	struct user_qp *qp = object;
	struct user_srq *srq = object;

	switch (async_event_element(type)) {
	case ELEMENT_CQ:
		events_count(&cq->async_events_taken, 1);
		break;
	case ELEMENT_QP:
		events_count(&qp->async_events_taken, 1);
		break;
	case ELEMENT_SRQ:
		events_count(&srq->async_events_taken, 1);
		break;
	case ELEMENT_PORT:
	case ELEMENT_WQ: /* the device raises none */
		break;
	}
}

static void async_event_fill(struct ibv_async_event *event, int type, void *object)
{
	event->event_type = type;
	switch (async_event_element(type)) {
	case ELEMENT_CQ:
		event->element.cq = &((struct user_cq *)object)->base;
		break;
	case ELEMENT_QP:
		event->element.qp = &((struct user_qp *)object)->base;
		break;
	case ELEMENT_SRQ:
		event->element.srq = &((struct user_srq *)object)->base;
		break;
	case ELEMENT_PORT:
	case ELEMENT_WQ:
		event->element.port_num = (int)(uintptr_t)object;
		break;
	}
}

int softhca_ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	void *object;
	int type, error;

	error = event_queue_take(&to_user_context(context)->async, &type, &object);
	if (error) {
		errno = -error;
		return -1;
	}
	async_event_fill(event, type, object);
	if (type == IBV_EVENT_SRQ_LIMIT_REACHED)
		LINT(srq_limit_reached, object);
	return 0;
}

void softhca_ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (async_event_element(event->event_type)) {
	case ELEMENT_CQ:
		events_count(&cq->async_events_completed, 1);
		break;
	case ELEMENT_QP:
		events_count(&qp->events_completed, 1);
		break;
	case ELEMENT_SRQ:
		events_count(&srq->events_completed, 1);
		break;
	case ELEMENT_PORT:
	case ELEMENT_WQ:
		break;
	}
}
