/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on event channels, and the end of calls that wait for an event. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "progress/progress.h"
#include "explain/explain.h"
#include "cm_host/manager.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"

struct rdma_event_channel *softhca_rdma_create_event_channel(void)
{
	WITHOUT_CANCELLATION;
	int count = devices_open();
	struct user_cm_channel *channel;

	if (count <= 0) {
		errno = count ? -count : ENODEV;
		return NULL;
	}
	channel = channel_create();
	return channel ? &channel->base : NULL;
}

void softhca_rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	channel_destroy(to_user_cm_channel(channel));
}

int softhca_rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **event)
{
	struct user_cm_channel *channel = to_user_cm_channel(base);
	struct user_cm_event *taken;
	int error;

	if (!event)
		return result_of(-REFUSE(hca_of_id(NULL), "rdma_get_cm_event", EINVAL, RULE_RDMACM_NULL,
					 (uintptr_t)base, (uintptr_t)event));
	if (channel->process != progress_generation())
		return result_of(
			-REFUSE(hca_of_id(NULL), "rdma_get_cm_event", EBADF, RULE_RDMACM_OF_PARENT, (uintptr_t)base));
	error = channel_next(channel, &taken);
	if (error)
		return result_of(error);
	*event = &taken->base;
	return 0;
}

int softhca_rdma_ack_cm_event(struct rdma_cm_event *event)
{
	WITHOUT_CANCELLATION;

	if (!event)
		return result_of(-REFUSE(hca_of_id(NULL), "rdma_ack_cm_event", EINVAL, RULE_RDMACM_NO_EVENT, 0));
	event_acknowledged(to_user_cm_event(event));
	free(event);
	return 0;
}

int softhca_rdma_write_cm_event(struct rdma_cm_id *base, enum rdma_cm_event_type type, int status, uint64_t arg)
{
	WITHOUT_CANCELLATION;
	struct user_cm_event *event;
	struct user_cm_id *id;

	if ((int)type != RDMA_CM_EVENT_USER_)
		return result_of(-REFUSE(hca_of_id(to_user_cm_id(base)), "rdma_write_cm_event", EINVAL,
					 RULE_RDMACM_EVENT_TYPE, type));
	id = id_begin(base, "rdma_write_cm_event");
	if (!id)
		return -1;
	event = event_new(id, type, status);
	if (!event)
		return id_end(id, -ENOMEM);
	/* Later versions have `uint64_t arg` in the union. */
	memcpy(&event->base.param, &arg, sizeof(arg));
	event_put(event);
	return id_end(id, 0);
}

/* Returns the result of a synchronous call (rdma-cm 2.3). */
static int event_result(const struct rdma_cm_event *event)
{
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

int id_end_complete(struct user_cm_id *id, int result)
{
	struct rdma_cm_event *before = id->base.event;
	bool waits = !result && id->synchronous;

	pthread_mutex_unlock(&id->lock);
	hca_manager_push();
	if (!waits)
		return result_of(result);
	if (before) {
		id->base.event = NULL;
		softhca_rdma_ack_cm_event(before);
	}
	if (softhca_rdma_get_cm_event(id->base.channel, &id->base.event))
		return -1;
	/* rdma_get_cm_event(3) has set errno to the error of the QP's transition. */
	if (id->base.event->event == RDMA_CM_EVENT_CONNECT_ERROR)
		return -1;
	return result_of(event_result(id->base.event));
}
