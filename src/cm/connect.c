/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of both sides of a connection, see cm.h: each checks the state, makes a message and sends it. The calls for
 * datagrams are in lookup.c.
 */
#include "cm/manager.h"

#include <errno.h>
#include <string.h>

#include "cm/timeouts.h"

enum {
	LID_OF_ANOTHER_SUBNET = 0xffff, /* IBTA 12.6.5 */
	MOST_RETRIES = 7,
};

static uint8_t byte_least(uint8_t value, uint8_t most)
{
	return value < most ? value : most;
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

static void listen_last(struct cm_id *id, uint64_t service_id)
{
	struct cm_id **last = &id->cm->listeners;

	while (*last)
		last = &(*last)->next_listener;
	*last = id;
	id->next_listener = NULL;
	id->listener_link = last;
	id->known.service_id = service_id;
	cm_set_state(id, CM_STATE_LISTEN);
}

int cm_listen(struct cm_id *id, uint64_t service_id)
{
	struct cm_outbox outbox;
	int error = 0;

	cm_begin(id->cm, &outbox);
	if (cm_id_is_free(id)) {
		listen_last(id, service_id);
		cm_look_again(id->cm, service_id);
	} else {
		error = cm_wrong_state(id, "rdma_listen");
	}
	cm_end(id->cm, &outbox);
	return error;
}

/* ---- active side ------------------------------------------------------------------------------------------------- */

static void req_fill_path(struct cm_req *req, const struct packet_path *path)
{
	bool local = path->hop_limit <= 1;

	req->primary_local_lid = req->primary_remote_lid = local ? 0 : LID_OF_ANOTHER_SUBNET;
	req->primary_subnet_local = local;
	memcpy(req->primary_local_gid, &path->source, sizeof(req->primary_local_gid));
	memcpy(req->primary_remote_gid, &path->destination, sizeof(req->primary_remote_gid));
	req->primary_flow_label = path->flow_label;
	req->primary_traffic_class = path->traffic_class;
	req->primary_hop_limit = path->hop_limit;
	req->primary_service_level = path->service_level;
}

/* An XRC initiator has no receive queue, and its target no retries, so these stay 0 in an XRC REQ. */
static void req_fill_transport(struct cm_req *req, const struct cm_request *request)
{
	switch (request->qp_type) {
	case IBV_QPT_UC:
		req->transport_service = CM_TRANSPORT_UC;
		break;
	case IBV_QPT_XRC_SEND:
		req->transport_service = CM_TRANSPORT_EXTENDED;
		req->extended_transport = CM_EXTENDED_XRC;
		return;
	default:
		req->transport_service = CM_TRANSPORT_RC;
		break;
	}
	req->responder_resources = request->responder_resources;
	req->retry_count = byte_least(request->retry_count, MOST_RETRIES);
	req->rnr_retry_count = byte_least(request->rnr_retry_count, MOST_RETRIES);
	req->srq = request->srq;
}

static uint8_t connect_lifetime(const struct cm_id *id, const struct cm_request *request)
{
	return request->packet_lifetime ? request->packet_lifetime : id->cm->config.packet_lifetime;
}

static void fill_req(struct cm_id *id, const struct cm_request *request)
{
	const struct cm_config *config = &id->cm->config;
	struct cm_req *req = &id->sent.req;

	id->sent.kind = CM_REQ;
	id->sent.transaction_id = id->transaction_id;
	id->sent.attribute_modifier = request->ece_options;
	req->local_comm_id = id->known.local_comm_id;
	req->vendor_id = request->ece_vendor;
	req->service_id = request->service_id;
	req->local_ca_guid = config->ca_guid;
	req->local_qpn = request->qpn;
	req->initiator_depth = request->initiator_depth;
	req->remote_response_timeout = req->local_response_timeout = config->response_timeout;
	req->flow_control = request->flow_control;
	req->starting_psn = id->known.rq_psn;
	req->pkey = CM_DEFAULT_PKEY;
	req->path_mtu = request->path_mtu;
	req->max_cm_retries = config->retries;
	req->primary_ack_timeout = cm_ack_timeout(connect_lifetime(id, request), config->ack_delay);
	req_fill_transport(req, request);
	req_fill_path(req, &request->path);
}

static void connect_note_request(struct cm_id *id, const struct cm_request *request)
{
	struct cm_parameters *known = &id->known;
	uint32_t comm_id = known->local_comm_id;

	*known = (struct cm_parameters){
		.service_id = request->service_id,
		.local_comm_id = comm_id,
		.path = request->path,
		.path_mtu = request->path_mtu,
		.qp_type = request->qp_type,
		.local_qpn = request->qpn,
		.rq_psn = cm_draw_psn(id),
		.responder_resources = request->responder_resources,
		.initiator_depth = request->initiator_depth,
		.retry_count = byte_least(request->retry_count, MOST_RETRIES),
		.rnr_retry_count = byte_least(request->rnr_retry_count, MOST_RETRIES),
		.ack_timeout = byte_least((uint8_t)(connect_lifetime(id, request) + 1), 31),
	};
}

static int connect_send_req(struct cm_id *id, const struct cm_request *request)
{
	uint32_t response_ms = cm_code_ms(id->cm->config.response_timeout);
	int error;

	if (!cm_id_is_free(id))
		return cm_wrong_state(id, "rdma_connect");
	if (request->private_data.length > sizeof(id->sent.req.private_data))
		return -EINVAL;
	error = cm_id_name(id);
	if (error)
		return error;
	cm_begin_active(id);
	connect_note_request(id, request);
	fill_req(id, request);
	cm_put_private(id->sent.req.private_data, sizeof(id->sent.req.private_data), request->private_data);
	cm_set_state(id, CM_STATE_REQ_SENT);
	cm_send_until_answered(id, 2 * cm_code_ms(connect_lifetime(id, request)) + response_ms);
	return 0;
}

int cm_send_req(struct cm_id *id, const struct cm_request *parameters)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = connect_send_req(id, parameters);
	cm_end(id->cm, &outbox);
	return error;
}

static int connect_send_rtu(struct cm_id *id, struct cm_private private_data)
{
	if (id->state != CM_STATE_REP_RCVD && id->state != CM_STATE_MRA_REP_SENT)
		return cm_wrong_state(id, "rdma_establish");
	if (private_data.length > sizeof(id->sent.rtu.private_data))
		return -EINVAL;
	id->sent = cm_answer(id, CM_RTU);
	cm_put_private(id->sent.rtu.private_data, sizeof(id->sent.rtu.private_data), private_data);
	cm_set_state(id, CM_STATE_ESTABLISHED);
	cm_send_once(id, &id->sent);
	return 0;
}

int cm_send_rtu(struct cm_id *id, struct cm_private private_data)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = connect_send_rtu(id, private_data);
	cm_end(id->cm, &outbox);
	return error;
}

/* ---- passive side ------------------------------------------------------------------------------------------------ */

/*
 * librdmacm of the active side fails the connection if the REP names another ECE vendor than the REQ. An XRC target
 * sends nothing, so its REP has initiator depth and flow control 0.
 */
static void fill_rep(struct cm_id *id, const struct cm_reply *reply)
{
	const struct cm_config *config = &id->cm->config;
	bool xrc = id->known.qp_type == IBV_QPT_XRC_RECV;
	uint32_t vendor = id->known.remote_ece_vendor;
	struct cm_rep *rep;

	id->sent = cm_answer(id, CM_REP);
	id->sent.attribute_modifier = reply->ece_options;
	rep = &id->sent.rep;
	*(xrc ? &rep->local_eecn : &rep->local_qpn) = reply->qpn;
	rep->vendor_id_high = (uint8_t)(vendor >> 16);
	rep->vendor_id_middle = (uint8_t)(vendor >> 8);
	rep->vendor_id_low = (uint8_t)vendor;
	rep->starting_psn = id->known.rq_psn;
	rep->responder_resources = reply->responder_resources;
	rep->initiator_depth = xrc ? 0 : reply->initiator_depth;
	rep->target_ack_delay = config->ack_delay;
	rep->failover_accepted = id->offers_alternate ? CM_FAILOVER_UNSUPPORTED : CM_FAILOVER_ACCEPTED;
	rep->flow_control = !xrc && reply->flow_control;
	rep->rnr_retry_count = byte_least(reply->rnr_retry_count, MOST_RETRIES);
	rep->srq = xrc || reply->srq;
	rep->local_ca_guid = config->ca_guid;
}

static int connect_send_rep(struct cm_id *id, const struct cm_reply *parameters)
{
	if (id->state != CM_STATE_REQ_RCVD && id->state != CM_STATE_MRA_REQ_SENT)
		return cm_wrong_state(id, "rdma_accept");
	if (parameters->private_data.length > sizeof(id->sent.rep.private_data))
		return -EINVAL;
	id->known.local_qpn = parameters->qpn;
	id->known.responder_resources = parameters->responder_resources;
	id->known.initiator_depth = parameters->initiator_depth;
	fill_rep(id, parameters);
	cm_put_private(id->sent.rep.private_data, sizeof(id->sent.rep.private_data), parameters->private_data);
	cm_set_state(id, CM_STATE_REP_SENT);
	cm_send_until_answered(id, id->wait_ns / CM_MS);
	return 0;
}

int cm_send_rep(struct cm_id *id, const struct cm_reply *parameters)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = connect_send_rep(id, parameters);
	cm_end(id->cm, &outbox);
	return error;
}

static int connect_establish(struct cm_id *id)
{
	switch (id->state) {
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
		cm_set_state(id, CM_STATE_ESTABLISHED);
		cm_raise(id, CM_EVENT_ESTABLISHED, 0, NULL, NULL);
		return 0;
	case CM_STATE_ESTABLISHED:
		return -EISCONN;
	default:
		return cm_wrong_state(id, "rdma_notify");
	}
}

int cm_establish(struct cm_id *id)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = connect_establish(id);
	cm_end(id->cm, &outbox);
	return error;
}

/* ---- both sides -------------------------------------------------------------------------------------------------- */

static int connect_send_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data)
{
	if (info.length > sizeof(id->sent.rej.info) || private_data.length > sizeof(id->sent.rej.private_data))
		return -EINVAL;
	switch (id->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
		cm_post_rej(id, reason, info, private_data);
		cm_to_idle(id);
		return 0;
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
		cm_post_rej(id, reason, info, private_data);
		cm_to_timewait(id);
		return 0;
	default:
		return cm_wrong_state(id, "rdma_reject");
	}
}

int cm_send_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = connect_send_rej(id, reason, info, private_data);
	cm_end(id->cm, &outbox);
	return error;
}

/* No explanations: rdma_disconnect(3) tries both of these calls, and both may fail. */

int cm_send_dreq(struct cm_id *id, struct cm_private private_data)
{
	struct cm_outbox outbox;
	int error = -EINVAL;

	cm_begin(id->cm, &outbox);
	if (id->state == CM_STATE_ESTABLISHED && private_data.length <= sizeof(id->sent.dreq.private_data)) {
		cm_begin_release(id, private_data);
		error = 0;
	}
	cm_end(id->cm, &outbox);
	return error;
}

static void answer_release(struct cm_id *id, struct cm_private private_data)
{
	id->sent = cm_answer(id, CM_DREP);
	cm_put_private(id->sent.drep.private_data, sizeof(id->sent.drep.private_data), private_data);
	cm_to_timewait(id);
	cm_send_once(id, &id->sent);
}

int cm_send_drep(struct cm_id *id, struct cm_private private_data)
{
	struct cm_outbox outbox;
	int error = -EINVAL;

	cm_begin(id->cm, &outbox);
	if (id->state == CM_STATE_DREQ_RCVD && private_data.length <= sizeof(id->sent.drep.private_data)) {
		answer_release(id, private_data);
		error = 0;
	}
	cm_end(id->cm, &outbox);
	return error;
}
