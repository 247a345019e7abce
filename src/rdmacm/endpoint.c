/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_ep(3), rdma_destroy_ep(3), rdma_get_request(3). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"

/* As in the real library. */
enum { RESOLVE_TIMEOUT_MS = 2000 };

/* Stores the attributes for the QPs of a listener's children. */
static int endpoint_keep_attributes(struct user_cm_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (pd)
		id->base.pd = pd;
	if (!attr)
		return 0;
	id->qp_attr = malloc(sizeof(*id->qp_attr));
	if (!id->qp_attr)
		return result_of(-ENOMEM);
	*id->qp_attr = *attr;
	id->qp_attr->qp_type = id->base.qp_type;
	return 0;
}

static int endpoint_resolve(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr)
{
	if (softhca_rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (res->ai_route_len) {
		if (softhca_rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
			return -1;
	} else if (softhca_rdma_resolve_route(id, RESOLVE_TIMEOUT_MS)) {
		return -1;
	}
	if (!attr)
		return 0;
	attr->qp_type = id->qp_type;
	return softhca_rdma_create_qp(id, pd, attr);
}

int softhca_rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			   struct ibv_qp_init_attr *qp_init_attr)
{
	WITHOUT_CANCELLATION;
	struct rdma_cm_id *made;
	int result;

	if (!res || !id)
		return result_of(-REFUSE(hca_of_id(NULL), "rdma_create_ep", EINVAL, RULE_RDMACM_NULL, (uintptr_t)id,
					 (uintptr_t)res));
	if (softhca_rdma_create_id(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space))
		return -1;
	made->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (res->ai_flags & RAI_PASSIVE) {
		result = softhca_rdma_bind_addr(made, res->ai_src_addr);
		if (!result)
			result = endpoint_keep_attributes(to_user_cm_id(made), pd, qp_init_attr);
	} else {
		result = endpoint_resolve(made, res, pd, qp_init_attr);
	}
	if (result) {
		int error = errno;

		softhca_rdma_destroy_ep(made);
		errno = error;
		return result;
	}
	*id = made;
	return 0;
}

void softhca_rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		softhca_rdma_destroy_qp(id);
	if (id->srq)
		softhca_rdma_destroy_srq(id);
	softhca_rdma_destroy_id(id);
}

/* Creates the child's QP; the request becomes the child's event. */
static int listener_take_request(struct user_cm_id *listener, struct rdma_cm_event *event, struct rdma_cm_id **id)
{
	struct ibv_qp_init_attr attr;

	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		int error = event->status < 0 ? -event->status : event->status ? event->status : EINVAL;

		errno = REFUSE(hca_of_id(listener), "rdma_get_request", error, RULE_RDMACM_OTHER_EVENT, event->event,
			       (uint64_t)(int64_t)event->status);
		softhca_rdma_ack_cm_event(event);
		errno = error;
		return -1;
	}
	if (listener->qp_attr) {
		attr = *listener->qp_attr;
		if (softhca_rdma_create_qp(event->id, listener->base.pd, &attr)) {
			int error = errno;
			struct rdma_cm_id *child = event->id;

			softhca_rdma_ack_cm_event(event);
			softhca_rdma_destroy_id(child);
			errno = error;
			return -1;
		}
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}

int softhca_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct user_cm_id *listener = id_begin(listen, "rdma_get_request");
	struct rdma_cm_event *event;
	int error;

	if (!listener)
		return -1;
	error = id_check(listener, ID_CALL_GET_REQUEST);
	if (!error && !listener->synchronous)
		error = -REFUSE(hca_of_id(listener), "rdma_get_request", EINVAL, RULE_RDMACM_NOT_SYNCHRONOUS, 0);
	if (id_end(listener, error))
		return -1;
	if (listen->event) {
		softhca_rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (softhca_rdma_get_cm_event(listen->channel, &event))
		return -1;
	return listener_take_request(listener, event, id);
}
