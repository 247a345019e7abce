/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of rdma_get_cm_event(3) before the program gets an event: fills in public members, modifies QPs, creates the IDs
 * of requests. It happens on the program's thread, because programs rely on nothing changing at other times. So a
 * program must read its channel to get connected (rdma-cm 2.2).
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/deliver.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"
#include "rdmacm/route.h"
#include "rdmacm/sockaddr.h"

/* Returns the bytes of private data after the header in @field bytes. */
static uint8_t private_data_length(size_t field, enum cm_hello hello)
{
	return (uint8_t)(hello == CM_HELLO_NONE ? field : field - CM_HELLO_BYTES);
}

/* Copies the whole field; bytes that were not sent are zero. */
static void event_attach_data(struct user_cm_event *event, const uint8_t *data, uint8_t length)
{
	memcpy(event->private_data, data, length);
	event->base.param.conn.private_data = event->private_data;
	event->base.param.conn.private_data_len = length;
}

static uint32_t rep_vendor(const struct cm_rep *rep)
{
	return (uint32_t)rep->vendor_id_high << 16 | (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
}

enum cm_hello request_addresses(const struct cm_message *message, struct cm_hello_addresses *addresses)
{
	bool sidr = message->kind == CM_SIDR_REQ;

	return cm_hello_unpack(sidr ? message->sidr_req.private_data : message->req.private_data,
			       sidr ? message->sidr_req.service_id : message->req.service_id, addresses);
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

static int child_fill(struct user_cm_id *child, const struct user_cm_event *event)
{
	struct cm_hello_addresses addresses;
	struct cm_parameters parameters;
	struct sockaddr_storage own;
	uint16_t space, port;

	cm_id_query(child->cm, &parameters);
	cm_service_port(parameters.service_id, &space, &port);
	address_from_gid(&own, &parameters.path.source, port);
	child->path.device = device_of_address((struct sockaddr *)&own, &child->path.sgid_index);
	if (!child->path.device)
		return -ENODEV;
	if (request_addresses(&event->message, &addresses) == CM_HELLO_NONE) {
		addresses.destination = own;
		address_from_gid(&addresses.source, &parameters.path.destination, 0);
	}
	child->path.source = addresses.destination;
	child->path.destination = addresses.source;
	child->path.sgid = parameters.path.source;
	child->path.dgid = parameters.path.destination;
	child->tos = parameters.path.traffic_class;
	child->flow_label = parameters.path.flow_label;
	child->path_mtu = parameters.path_mtu;
	id_publish_addresses(child);
	return path_publish(child);
}

static void event_describe_req(struct user_cm_id *child, struct user_cm_event *event, enum cm_hello hello)
{
	const struct cm_req *req = &event->message.req;
	struct rdma_conn_param *param = &event->base.param.conn;
	uint8_t length = private_data_length(sizeof(req->private_data), hello);

	/* The peer's limits become the maxima of this side. */
	param->responder_resources = child->responder_resources = req->initiator_depth;
	param->initiator_depth = child->initiator_depth = req->responder_resources;
	param->flow_control = req->flow_control;
	param->retry_count = req->retry_count;
	param->rnr_retry_count = req->rnr_retry_count;
	param->srq = req->srq;
	param->qp_num = req->local_qpn;
	child->remote_ece = (struct ibv_ece){.vendor_id = req->vendor_id, .options = event->message.attribute_modifier};
	event_attach_data(event, req->private_data + sizeof(req->private_data) - length, length);
}

static void event_describe_sidr_req(struct user_cm_id *child, struct user_cm_event *event, enum cm_hello hello)
{
	const struct cm_sidr_req *req = &event->message.sidr_req;
	uint8_t length = private_data_length(sizeof(req->private_data), hello);

	event_attach_data(event, req->private_data + sizeof(req->private_data) - length, length);
	/* The real library leaves this zero; qperf creates an AH from it (rdma-cm 4.1). */
	ah_attributes(child, &event->base.param.ud.ah_attr);
}

/* Returns NULL if the request is refused. */
static struct user_cm_id *request_make_child(struct user_cm_event *event)
{
	struct user_cm_id *listener = event->owner, *child;
	struct user_cm_channel *channel = listener->synchronous ? NULL : listener->channel;

	child = id_new(channel, listener->base.context, listener->base.ps, listener->base.qp_type, ID_CONNECT);
	if (!child)
		return NULL;
	child->cm = event->child;
	if (child_fill(child, event)) {
		child->cm = NULL;
		id_free(child);
		return NULL;
	}
	event->child = NULL;
	cm_id_set_owner(child->cm, child);
	return child;
}

static bool event_deliver_request(struct user_cm_event *event)
{
	struct cm_hello_addresses addresses;
	enum cm_hello hello = request_addresses(&event->message, &addresses);
	struct user_cm_id *child = request_make_child(event);

	if (!child)
		return false;
	event->base.event = RDMA_CM_EVENT_CONNECT_REQUEST;
	event->base.id = &child->base;
	event->base.listen_id = &event->owner->base;
	if (event->message.kind == CM_SIDR_REQ)
		event_describe_sidr_req(child, event, hello);
	else
		event_describe_req(child, event, hello);
	return true;
}

/* ---- answers -------------------------------------------------------------------------------------------------- */

/* Rejects the connection of a QP that could not be connected. Later messages of the peer are discarded. */
static void id_fail_connection(struct user_cm_id *id, struct user_cm_event *event, int error)
{
	const struct cm_private nothing = {0};

	qp_fail(id);
	events_lock();
	id->failed = true;
	events_unlock();
	cm_send_rej(id->cm, CM_REJECT_CONSUMER, nothing, nothing);
	event->base.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->base.status = -1;
	errno = -error;
}

/*
 * Applies the ECE of the REP to the QP. A peer without a vendor does not negotiate. A vendor that differs from that in
 * the REQ fails the connection, as in librdmacm.
 */
static int id_apply_ece(struct user_cm_id *id)
{
	struct ibv_ece ece = id->remote_ece;
	struct ibv_qp *qp = qp_of_id(id);

	if (!ece.vendor_id)
		ece = (struct ibv_ece){.vendor_id = id->local_ece.vendor_id};
	if (ece.vendor_id != id->local_ece.vendor_id)
		return -REFUSE(hca_of_id(id), "rdma_get_cm_event", EINVAL, RULE_RDMACM_ECE_REPLY, ece.vendor_id,
			       id->local_ece.vendor_id);
	if (qp && ece.vendor_id)
		softhca_ibv_set_ece(qp, &ece);
	return 0;
}

static bool event_deliver_response(struct user_cm_id *id, struct user_cm_event *event)
{
	const struct cm_rep *rep = &event->message.rep;
	struct rdma_conn_param *param = &event->base.param.conn;
	const struct cm_private nothing = {0};
	int error;

	event_attach_data(event, rep->private_data, sizeof(rep->private_data));
	param->responder_resources = rep->initiator_depth;
	param->initiator_depth = rep->responder_resources;
	param->flow_control = rep->flow_control;
	param->rnr_retry_count = rep->rnr_retry_count;
	param->srq = rep->srq;
	param->qp_num = id->base.qp_type == IBV_QPT_XRC_SEND ? rep->local_eecn : rep->local_qpn;
	id->remote_ece = (struct ibv_ece){.vendor_id = rep_vendor(rep), .options = event->message.attribute_modifier};
	event->base.status = 0;
	if (!id->base.qp) {
		event->base.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
		return true;
	}
	error = id_apply_ece(id);
	if (!error)
		error = qp_connect(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH);
	if (!error)
		error = cm_send_rtu(id->cm, nothing);
	if (error)
		id_fail_connection(id, event, error);
	else
		event->base.event = RDMA_CM_EVENT_ESTABLISHED;
	return true;
}

static bool event_deliver_sidr_response(const struct user_cm_id *id, struct user_cm_event *event)
{
	const struct cm_sidr_rep *rep = &event->message.sidr_rep;

	event_attach_data(event, rep->private_data, sizeof(rep->private_data));
	event->base.event = RDMA_CM_EVENT_UNREACHABLE;
	if (event->base.status)
		return true;
	event->base.event = RDMA_CM_EVENT_ESTABLISHED;
	ah_attributes(id, &event->base.param.ud.ah_attr);
	event->base.param.ud.qp_num = rep->qpn;
	event->base.param.ud.qkey = rep->qkey;
	return true;
}

static bool event_deliver_rejection(struct user_cm_id *id, struct user_cm_event *event)
{
	event->base.event = RDMA_CM_EVENT_REJECTED;
	if (event->message.kind == CM_REJ)
		event_attach_data(event, event->message.rej.private_data, sizeof(event->message.rej.private_data));
	else
		event_attach_data(event, event->private_data, sizeof(event->message.rej.private_data));
	qp_fail(id);
	return true;
}

bool deliver_from_manager(struct user_cm_event *event)
{
	struct user_cm_id *id = event->owner;

	switch (event->kind) {
	case CM_EVENT_REQUEST:
		return event_deliver_request(event);
	case CM_EVENT_RESPONSE:
		return id->cm && event_deliver_response(id, event);
	case CM_EVENT_SIDR_RESPONSE:
		return event_deliver_sidr_response(id, event);
	case CM_EVENT_REJECTED:
		return event_deliver_rejection(id, event);
	case CM_EVENT_ESTABLISHED:
		event->base.event = RDMA_CM_EVENT_ESTABLISHED;
		return true;
	case CM_EVENT_UNREACHABLE:
		event->base.event = RDMA_CM_EVENT_UNREACHABLE;
		return true;
	case CM_EVENT_DISCONNECTED:
		event->base.event = RDMA_CM_EVENT_DISCONNECTED;
		return true;
	case CM_EVENT_TIMEWAIT_EXIT:
		event->base.event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		return true;
	default:
		return false;
	}
}
