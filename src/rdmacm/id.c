/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3); see id.h. */
#include "rdmacm/id.h"

#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "progress/progress.h"
#include "explain/explain.h"
#include "cm_host/manager.h"
#include "rdmacm/addrinfo.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/multicast.h"
#include "rdmacm/queue_pair.h"

struct user_cm_id *id_new(struct user_cm_channel *channel, void *context, enum rdma_port_space space,
			  enum ibv_qp_type type, enum id_state state)
{
	struct user_cm_id *id = calloc(1, sizeof(*id));
	bool synchronous = !channel;

	if (!id)
		return NULL;
	if (synchronous)
		channel = channel_create();
	if (!channel) {
		free(id);
		return NULL;
	}
	pthread_mutex_init(&id->lock, NULL);
	id->base.context = context;
	id->base.ps = space;
	id->base.qp_type = type;
	id->process = progress_generation();
	id->synchronous = synchronous;
	id->state = state;
	/* A request or the program may lower the maximum. */
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	channel_enter(channel, id);
	return id;
}

/* Call after events_drain(), or if the events belong to the parent process. */
static void id_release(struct user_cm_id *id)
{
	struct user_cm_channel *channel = id->channel;

	free(id->base.route.path_rec);
	free(id->qp_attr);
	if (id->found)
		softhca_rdma_freeaddrinfo(id->found);
	if (id->synchronous && !channel->destroyed)
		channel_destroy(channel);
	channel_leave(id);
	pthread_mutex_destroy(&id->lock);
	free(id);
}

void id_free(struct user_cm_id *id)
{
	struct cm_id *cm;

	if (id->process != progress_generation()) {
		id_release(id);
		return;
	}
	pthread_mutex_lock(&id->lock);
	events_lock();
	__atomic_store_n(&id->state, ID_DESTROYING, __ATOMIC_RELEASE);
	events_unlock();
	cm = id->cm;
	id->cm = NULL;
	pthread_mutex_unlock(&id->lock);
	/* From here on @cm raises no events. */
	if (cm) {
		cm_id_destroy(cm);
		hca_manager_push();
	}
	/* Otherwise the drain would wait for this event, which may belong to a group. */
	if (id->base.event) {
		struct rdma_cm_event *event = id->base.event;

		id->base.event = NULL;
		softhca_rdma_ack_cm_event(event);
	}
	multicast_leave_all(id);
	events_drain(id, NULL);
	port_release(&id->port);
	id_release(id);
}

void id_bind_device(struct user_cm_id *id, const struct resolved_path *path)
{
	id->path.device = path->device;
	id->path.sgid_index = path->sgid_index;
	id->path.sgid = path->sgid;
	id->base.verbs = path->device->context;
	id->base.port_num = 1;
	if (!id->base.pd)
		id->base.pd = path->device->pd;
	id->base.route.addr.addr.ibaddr.sgid = path->sgid;
	id->base.route.addr.addr.ibaddr.pkey = htobe16(0xffff);
}

void id_publish_addresses(struct user_cm_id *id)
{
	struct rdma_addr *addr = &id->base.route.addr;

	id_bind_device(id, &id->path);
	addr->src_storage = id->path.source;
	addr->dst_storage = id->path.destination;
	addr->addr.ibaddr.dgid = id->path.dgid;
}

/* From rdma_create_id(3), PORT SPACE. */
static enum ibv_qp_type space_qp_type(enum rdma_port_space space)
{
	return space == RDMA_PS_UDP || space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

int softhca_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			   enum rdma_port_space ps)
{
	WITHOUT_CANCELLATION;
	int count = devices_open();
	struct user_cm_id *made;

	if (count <= 0)
		return result_of(count ? count : -ENODEV);
	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IPOIB && ps != RDMA_PS_IB)
		return result_of(-REFUSE(hca_of_id(NULL), "rdma_create_id", EINVAL, RULE_RDMACM_PORT_SPACE, ps));
	made = id_new(channel ? to_user_cm_channel(channel) : NULL, context, ps, space_qp_type(ps), ID_IDLE);
	if (!made)
		return -1;
	*id = &made->base;
	return 0;
}

int softhca_rdma_destroy_id(struct rdma_cm_id *id)
{
	WITHOUT_CANCELLATION;

	id_free(to_user_cm_id(id));
	return 0;
}

int softhca_rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_migrate_id");
	struct user_cm_channel *to = channel ? to_user_cm_channel(channel) : NULL, *before;
	struct rdma_cm_event *event;
	bool was_synchronous;

	if (!id)
		return -1;
	if (!channel && id->synchronous)
		return id_end(id,
			      -REFUSE(hca_of_id(id), "rdma_migrate_id", EINVAL, RULE_RDMACM_MIGRATE_SYNCHRONOUS, 0));
	if (!to)
		to = channel_create();
	if (!to)
		return id_end(id, -errno);
	event = base->event;
	base->event = NULL;
	was_synchronous = id->synchronous;
	id->synchronous = !channel;
	before = id->channel;
	pthread_mutex_unlock(&id->lock);
	if (was_synchronous && event)
		softhca_rdma_ack_cm_event(event);
	else
		base->event = event;
	/* Keeps the old channel alive until the lines below have finished with it. */
	events_lock();
	before->users++;
	events_unlock();
	events_migrate(id, to);
	if (was_synchronous)
		channel_destroy(before);
	channel_put(before);
	return 0;
}
