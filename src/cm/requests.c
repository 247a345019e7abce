/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Incoming requests (IBTA 12.9): repetitions, requests of a QP that is already connected, requests without a listener,
 * and all others, which create an id and go to the listener. See manager.h.
 */
#include "cm/manager.h"

#include <stdlib.h>
#include <string.h>

#include "cm/timeouts.h"
#include "core/limits.h"

/*
 * ---- requests without a listener ------------------------------------------------------------------------------------
 */

static void request_refuse_unlistened(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	uint64_t service_id = message->kind == CM_REQ ? message->req.service_id : message->sidr_req.service_id;
	struct packet_path back = cm_way_back(path);
	uint8_t mad[CM_MAD_BYTES], answer[CM_MAD_BYTES];
	struct cm_message reply;

	cm_explain(cm, RULE_CM_NO_LISTENER,
		   FIGURES(message->kind, CM_GID_HIGH(path->source), CM_GID_LOW(path->source), service_id,
			   service_id & 0xffff));
	cm_pack(message, mad);
	if (cm_answer_unclaimed(mad, answer) && cm_unpack(answer, &reply) == CM_WELL_FORMED)
		cm_post(cm, &back, &reply);
}

static void held_request_due(struct timer *timer)
{
	struct cm_held *held = (struct cm_held *)((char *)timer - offsetof(struct cm_held, timer));

	cm_take_request(held->cm, &held->path, &held->message, false);
	cm_held_free(held);
}

void cm_held_free(struct cm_held *held)
{
	wheel_remove(&held->timer);
	*held->link = held->next;
	if (held->next)
		held->next->link = held->link;
	held->cm->held_count--;
	free(held);
}

static bool request_hold(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	struct cm_held *held = cm->held_count < LIMIT_CM_HELD ? calloc(1, sizeof(*held)) : NULL;

	if (!held)
		return false;
	timer_init(&held->timer, held_request_due);
	held->cm = cm;
	held->path = *path;
	held->message = *message;
	held->next = cm->held;
	held->link = &cm->held;
	if (held->next)
		held->next->link = &held->next;
	cm->held = held;
	cm->held_count++;
	cm_arm(cm, &held->timer, cm->config.grace_ms * CM_MS);
	return true;
}

void cm_look_again(struct cm *cm, uint64_t service_id)
{
	for (struct cm_held *held = cm->held; held; held = held->next) {
		const struct cm_message *message = &held->message;

		if (service_id == (message->kind == CM_REQ ? message->req.service_id : message->sidr_req.service_id))
			cm_arm(cm, &held->timer, 0);
	}
}

/* ---- listeners --------------------------------------------------------------------------------------------------- */

static struct cm_id *next_listener(struct cm_id *from, uint64_t service_id)
{
	while (from && from->known.service_id != service_id)
		from = from->next_listener;
	return from;
}

/* Passes the request to the listeners in turn, until one answers other than CM_NOT_MINE. */
static enum cm_verdict listeners_ask(struct cm_id *child, const struct packet_path *path,
				     const struct cm_message *message, uint16_t *reason)
{
	const struct cm_functions *functions = child->cm->config.functions;
	struct cm_event event = {.kind = CM_EVENT_REQUEST, .message = message, .path = path};
	uint64_t service_id = child->known.service_id;
	enum cm_verdict verdict = CM_NOT_MINE;

	for (struct cm_id *listener = next_listener(child->cm->listeners, service_id);
	     listener && verdict == CM_NOT_MINE; listener = next_listener(listener->next_listener, service_id))
		verdict = functions->request(listener->owner, child, &event, &child->owner, reason);
	if (verdict == CM_NOT_MINE)
		cm_explain(child->cm, RULE_CM_NOT_FOR_LISTENER,
			   FIGURES(message->kind, CM_GID_HIGH(path->source), CM_GID_LOW(path->source), service_id,
				   service_id & 0xffff));
	return verdict;
}

/* ---- REQ --------------------------------------------------------------------------------------------------------- */

/* Stores the path of a connection. The route of this host determines the hop limit, not the REQ. */
static void know_path(struct packet_path *known, const struct packet_path *path, const struct cm_req *req)
{
	*known = cm_way_back(path);
	known->service_level = req->primary_service_level;
	known->traffic_class = req->primary_traffic_class;
	known->flow_label = req->primary_flow_label;
}

static bool know_qp_type(struct cm_parameters *known, const struct cm_req *req)
{
	switch (req->transport_service) {
	case CM_TRANSPORT_RC:
		known->qp_type = IBV_QPT_RC;
		return true;
	case CM_TRANSPORT_UC:
		known->qp_type = IBV_QPT_UC;
		return true;
	case CM_TRANSPORT_EXTENDED:
		known->qp_type = IBV_QPT_XRC_RECV;
		return req->extended_transport == CM_EXTENDED_XRC;
	default:
		return false;
	}
}

static void know_req(struct cm_id *child, const struct packet_path *path, const struct cm_message *message)
{
	static const uint8_t no_gid[16];
	const struct cm_req *req = &message->req;
	struct cm_parameters *known = &child->known;

	known->service_id = req->service_id;
	known->remote_ca_guid = req->local_ca_guid;
	known->remote_comm_id = req->local_comm_id;
	know_path(&known->path, path, req);
	known->path_mtu = req->path_mtu;
	know_qp_type(known, req);
	known->remote_qpn = req->local_qpn;
	known->sq_psn = req->starting_psn;
	/* Drawn before the REP, because the QP becomes ready to receive earlier. */
	known->rq_psn = cm_draw_psn(child);
	known->responder_resources = req->initiator_depth;
	known->initiator_depth = req->responder_resources;
	known->retry_count = req->retry_count;
	known->rnr_retry_count = req->rnr_retry_count;
	/* 0 would disable the QP's timer; like Linux, use the shortest timeout. */
	known->ack_timeout = req->primary_ack_timeout ? req->primary_ack_timeout : 1;
	known->remote_srq = req->srq;
	known->remote_flow_control = req->flow_control;
	known->remote_ece_vendor = req->vendor_id;
	known->remote_ece_options = message->attribute_modifier;
	child->offers_alternate =
		req->alternate_remote_lid || memcmp(req->alternate_remote_gid, no_gid, sizeof(no_gid)) != 0;
	child->transaction_id = message->transaction_id;
	child->retries = req->max_cm_retries;
	child->wait_ns = cm_code_ms(req->local_response_timeout) * CM_MS;
}

/* Returns the reason for which no listener could accept, or 0. */
static uint16_t check_req(struct cm *cm, const struct packet_path *path, const struct cm_req *req)
{
	struct cm_parameters ignored;

	/* Answers go to these addresses, which must not be another host's. */
	if (memcmp(req->primary_local_gid, &path->source, sizeof(path->source)) != 0 ||
	    memcmp(req->primary_remote_gid, &path->destination, sizeof(path->destination)) != 0) {
		cm_explain(cm, RULE_CM_REQUEST_GID,
			   FIGURES(CM_GID_HIGH(path->source), CM_GID_LOW(path->source), CM_GID_HIGH(path->destination),
				   CM_GID_LOW(path->destination)));
		return CM_REJECT_GID;
	}
	if (!know_qp_type(&ignored, req)) {
		cm_explain(cm, RULE_CM_REQUEST_TRANSPORT,
			   FIGURES(CM_GID_HIGH(path->source), CM_GID_LOW(path->source), req->transport_service,
				   req->extended_transport));
		return CM_REJECT_TRANSPORT;
	}
	if (req->path_mtu < IBV_MTU_256 || req->path_mtu > IBV_MTU_4096) {
		cm_explain(cm, RULE_CM_REQUEST_MTU,
			   FIGURES(CM_GID_HIGH(path->source), CM_GID_LOW(path->source), req->path_mtu));
		return CM_REJECT_MTU;
	}
	return 0;
}

/* Handles a repeated REQ, for which the peer has no answer yet, or one that arrives after the end of the connection. */
static void req_repeated(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	if (id->state == CM_STATE_MRA_REQ_SENT) {
		cm_send_mra(id);
	} else if (id->state == CM_STATE_TIMEWAIT) {
		cm_explain(id->cm, RULE_CM_REQ_OVER,
			   FIGURES(CM_GID_HIGH(path->source), CM_GID_LOW(path->source), message->req.local_comm_id,
				   id->known.local_comm_id));
		cm_refuse(id->cm, path, message, CM_REJECT_STALE);
	}
}

bool cm_is_stale(struct cm *cm, const struct packet_path *path, const struct cm_message *message, uint32_t qpn,
		 uint64_t guid)
{
	struct cm_id *old = cm_find_remote(cm, CM_KEY_REMOTE_QPN, qpn, guid, &path->source);

	if (!old)
		return false;
	cm_explain(cm, RULE_CM_STALE,
		   FIGURES(message->kind, CM_GID_HIGH(path->source), CM_GID_LOW(path->source), qpn,
			   old->known.local_comm_id, old->state));
	cm_refuse(cm, path, message, CM_REJECT_STALE);
	if (old->state == CM_STATE_ESTABLISHED)
		cm_begin_release(old, (struct cm_private){.data = NULL});
	return true;
}

static void request_explain_memory(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	cm_explain(cm, RULE_CM_REQUEST_MEMORY,
		   FIGURES(message->kind, CM_GID_HIGH(path->source), CM_GID_LOW(path->source)));
}

static void decide_req(struct cm_id *child, const struct packet_path *path, const struct cm_message *message)
{
	const struct cm_private nothing = {.data = NULL};
	uint16_t reason = CM_REJECT_CONSUMER;

	switch (listeners_ask(child, path, message, &reason)) {
	case CM_TAKE:
		/* The program has the message. An MRA is sent only if the REQ is repeated. */
		cm_set_state(child, CM_STATE_MRA_REQ_SENT);
		break;
	case CM_DROP:
		cm_id_free(child);
		break;
	case CM_REJECT:
	case CM_NOT_MINE:
		cm_post_rej(child, reason, nothing, nothing);
		cm_id_free(child);
		break;
	}
}

static void take_req(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	struct cm_id *child = cm_id_make(cm, NULL);

	if (!child || cm_id_name(child)) {
		request_explain_memory(cm, path, message);
		if (child)
			cm_id_free(child);
		return;
	}
	know_req(child, path, message);
	cm_enter_remote(child);
	cm_set_state(child, CM_STATE_REQ_RCVD);
	decide_req(child, path, message);
}

/* ---- SIDR_REQ ---------------------------------------------------------------------------------------------------- */

static void decide_sidr_req(struct cm_id *child, const struct packet_path *path, const struct cm_message *message)
{
	uint16_t reason = 0;

	switch (listeners_ask(child, path, message, &reason)) {
	case CM_TAKE:
		break;
	case CM_DROP:
		cm_id_free(child);
		break;
	case CM_REJECT:
	case CM_NOT_MINE:
		cm_post_sidr_rep(child, &(const struct cm_sidr_reply){.status = CM_SIDR_REJECTED});
		cm_id_free(child);
		break;
	}
}

static void take_sidr_req(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	struct cm_key key = cm_sidr_key(message->sidr_req.request_id, &path->source);
	struct cm_id *child = cm_id_make(cm, NULL);

	if (!child) {
		request_explain_memory(cm, path, message);
		return;
	}
	child->known.qp_type = IBV_QPT_UD;
	child->known.service_id = message->sidr_req.service_id;
	child->known.remote_comm_id = message->sidr_req.request_id;
	child->known.path = cm_way_back(path);
	child->transaction_id = message->transaction_id;
	cm_table_enter(&cm->table, &child->remote_id, &key);
	cm_set_state(child, CM_STATE_SIDR_REQ_RCVD);
	decide_sidr_req(child, path, message);
}

/*
 * ---- REQ and SIDR_REQ -----------------------------------------------------------------------------------------------
 */

/* Returns true if @message is a repetition, or no listener can accept it; it was answered if necessary. */
static bool request_is_done(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	const struct cm_req *req = &message->req;
	struct cm_key key;
	struct cm_id *id;
	uint16_t reason;

	if (message->kind == CM_SIDR_REQ) {
		key = cm_sidr_key(message->sidr_req.request_id, &path->source);
		return cm_table_find(&cm->table, &key);
	}
	reason = check_req(cm, path, req);
	if (reason) {
		cm_refuse(cm, path, message, reason);
		return true;
	}
	id = cm_find_remote(cm, CM_KEY_REMOTE_ID, req->local_comm_id, req->local_ca_guid, &path->source);
	if (id) {
		req_repeated(id, path, message);
		return true;
	}
	return cm_is_stale(cm, path, message, req->local_qpn, req->local_ca_guid);
}

void cm_take_request(struct cm *cm, const struct packet_path *path, const struct cm_message *message, bool grace)
{
	uint64_t service_id = message->kind == CM_REQ ? message->req.service_id : message->sidr_req.service_id;

	if (request_is_done(cm, path, message))
		return;
	if (!next_listener(cm->listeners, service_id)) {
		if (!grace || !request_hold(cm, path, message))
			request_refuse_unlistened(cm, path, message);
	} else if (message->kind == CM_REQ) {
		take_req(cm, path, message);
	} else {
		take_sidr_req(cm, path, message);
	}
}
