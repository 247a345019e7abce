/* SPDX-License-Identifier: BSD-2-Clause */
/* Incoming messages (IBTA 12.9). A message without a case is late or repeated, and ignored. */
#include "cm/manager.h"

#include <string.h>

#include "cm/timeouts.h"

/*
 * ---- lookup ---------------------------------------------------------------------------------------------------------
 */

/* Finds the id of a REJ, in which either id may be missing. */
static struct cm_id *find_rejected(struct cm *cm, const struct packet_path *path, const struct cm_rej *rej)
{
	struct cm_id *id;
	uint64_t guid;

	if (rej->reason == CM_REJECT_TIMEOUT && rej->info_length >= sizeof(guid)) {
		memcpy(&guid, rej->info, sizeof(guid));
		return cm_find_remote(cm, CM_KEY_REMOTE_ID, rej->local_comm_id, be64toh(guid), &path->source);
	}
	id = rej->message_rejected == CM_NAMED_REQ ? NULL : cm_find_local(cm, rej->remote_comm_id, rej->local_comm_id);
	return id ? id : cm_find_local(cm, rej->remote_comm_id, 0);
}

static struct cm_id *id_of_message(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	struct cm_id *id;

	switch (message->kind) {
	case CM_MRA:
		return cm_find_local(cm, message->mra.remote_comm_id,
				     message->mra.message_acknowledged == CM_NAMED_REQ ? 0
										       : message->mra.local_comm_id);
	case CM_REJ:
		return find_rejected(cm, path, &message->rej);
	case CM_REP:
		id = cm_find_local(cm, message->rep.remote_comm_id, 0);
		return id ? id : cm_find_local(cm, message->rep.remote_comm_id, message->rep.local_comm_id);
	case CM_RTU:
		return cm_find_local(cm, message->rtu.remote_comm_id, message->rtu.local_comm_id);
	case CM_DREQ:
		return cm_find_local(cm, message->dreq.remote_comm_id, message->dreq.local_comm_id);
	case CM_DREP:
		return cm_find_local(cm, message->drep.remote_comm_id, message->drep.local_comm_id);
	case CM_SIDR_REP:
		return cm_find_local(cm, message->sidr_rep.request_id, 0);
	default:
		return NULL;
	}
}

/*
 * ---- effects of messages --------------------------------------------------------------------------------------------
 */

/* Extends the timeout of the message and its repetitions: the peer has it and needs time (IBTA 12.6.6). */
static void wait_longer(struct cm_id *id, enum cm_state state, uint8_t service_timeout)
{
	cm_set_state(id, state);
	id->wait_ns = ((uint64_t)cm_code_ms(service_timeout) + cm_code_ms(id->known.ack_timeout)) * CM_MS;
	cm_arm(id->cm, &id->timer, id->wait_ns);
}

static void take_mra(struct cm_id *id, const struct cm_mra *mra)
{
	if (id->state == CM_STATE_REQ_SENT && mra->message_acknowledged == CM_NAMED_REQ)
		wait_longer(id, CM_STATE_MRA_REQ_RCVD, mra->service_timeout);
	else if (id->state == CM_STATE_REP_SENT && mra->message_acknowledged == CM_NAMED_REP)
		wait_longer(id, CM_STATE_MRA_REP_RCVD, mra->service_timeout);
}

static void know_reply(struct cm_id *id, const struct cm_message *message, uint32_t remote_qpn)
{
	const struct cm_rep *rep = &message->rep;
	struct cm_parameters *known = &id->known;

	known->remote_comm_id = rep->local_comm_id;
	known->remote_ca_guid = rep->local_ca_guid;
	known->remote_qpn = remote_qpn;
	known->sq_psn = rep->starting_psn;
	known->responder_resources = rep->initiator_depth;
	known->initiator_depth = rep->responder_resources;
	known->rnr_retry_count = rep->rnr_retry_count;
	known->ack_timeout = cm_ack_timeout((uint8_t)(known->ack_timeout - 1), rep->target_ack_delay);
	known->remote_srq = rep->srq;
	known->remote_flow_control = rep->flow_control;
	known->remote_ece_vendor =
		(uint32_t)rep->vendor_id_high << 16 | (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
	known->remote_ece_options = message->attribute_modifier;
}

static void take_reply(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	const struct cm_rep *rep = &message->rep;
	uint32_t remote_qpn = id->known.qp_type == IBV_QPT_XRC_SEND ? rep->local_eecn : rep->local_qpn;

	if (cm_find_remote(id->cm, CM_KEY_REMOTE_ID, rep->local_comm_id, rep->local_ca_guid, &path->source))
		return;
	if (cm_is_stale(id->cm, path, message, remote_qpn, rep->local_ca_guid))
		return;
	know_reply(id, message, remote_qpn);
	id->known.path.process = path->process;
	cm_enter_remote(id);
	cm_set_state(id, CM_STATE_REP_RCVD);
	cm_raise(id, CM_EVENT_RESPONSE, 0, message, path);
	/* The program has the message. An MRA is sent only if the REP is repeated. */
	cm_set_state(id, CM_STATE_MRA_REP_SENT);
}

static void take_rej(struct cm_id *id, const struct packet_path *path, const struct cm_message *message, bool rest)
{
	/* The program has not accepted yet; cm_send_rep() will detect the REJ. */
	bool unanswered = id->state == CM_STATE_REQ_RCVD || id->state == CM_STATE_MRA_REQ_SENT;

	cm_explain(id->cm, RULE_CM_REJECTED,
		   FIGURES(id->known.local_comm_id, CM_GID_HIGH(path->source), CM_GID_LOW(path->source),
			   message->rej.reason, message->rej.reason, id->state));
	if (rest)
		cm_to_timewait(id);
	else
		cm_to_idle(id);
	if (!unanswered)
		cm_raise(id, CM_EVENT_REJECTED, message->rej.reason, message, path);
}

static bool names_own_qp(const struct cm_id *id, const struct cm_dreq *dreq)
{
	if (dreq->remote_qpn == id->known.local_qpn)
		return true;
	cm_explain(id->cm, RULE_CM_DREQ_QPN, FIGURES(id->known.local_comm_id, dreq->remote_qpn, id->known.local_qpn));
	return false;
}

static void take_dreq(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	if (!names_own_qp(id, &message->dreq))
		return;
	id->transaction_id = message->transaction_id;
	cm_set_state(id, CM_STATE_DREQ_RCVD);
	cm_raise_disconnected(id, 0, message, path);
}

/*
 * Sends the lost DREP again, with the transaction id of the peer's DREQ, which may have crossed the DREQ of this side.
 */
static void release_again(struct cm_id *id, const struct cm_message *message)
{
	if (!names_own_qp(id, &message->dreq))
		return;
	if (id->sent.kind != CM_DREP)
		id->sent = cm_answer(id, CM_DREP);
	id->sent.transaction_id = message->transaction_id;
	cm_send_once(id, &id->sent);
}

static void take_drep(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	cm_to_timewait(id);
	cm_raise_disconnected(id, 0, message, path);
}

static void take_sidr_rep(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	const struct cm_sidr_rep *sidr_rep = &message->sidr_rep;

	if (sidr_rep->status != CM_SIDR_VALID)
		cm_explain(id->cm, RULE_CM_SIDR_REFUSED,
			   FIGURES(id->known.service_id, CM_GID_HIGH(path->source), CM_GID_LOW(path->source),
				   sidr_rep->status, sidr_rep->status));
	id->known.remote_qpn = sidr_rep->qpn;
	id->known.remote_ece_vendor = (uint32_t)sidr_rep->vendor_id_high << 8 | sidr_rep->vendor_id_low;
	id->known.remote_ece_options = message->attribute_modifier;
	cm_to_idle(id);
	cm_raise(id, CM_EVENT_SIDR_RESPONSE, sidr_rep->status, message, path);
}

#define ON(state, message) ((unsigned int)(state) << 8 | (unsigned int)(message))

void cm_step(struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	switch (ON(id->state, message->kind)) {
	case ON(CM_STATE_REQ_SENT, CM_MRA):
	case ON(CM_STATE_REP_SENT, CM_MRA):
		take_mra(id, &message->mra);
		break;
	case ON(CM_STATE_REQ_SENT, CM_REP):
	case ON(CM_STATE_MRA_REQ_RCVD, CM_REP):
		take_reply(id, path, message);
		break;
	case ON(CM_STATE_MRA_REP_SENT, CM_REP):
		cm_send_mra(id);
		break;
	case ON(CM_STATE_ESTABLISHED, CM_REP):
		/* The RTU was lost. Only the active side has sent one. */
		if (id->active)
			cm_send_once(id, &id->sent);
		break;
	case ON(CM_STATE_REP_SENT, CM_RTU):
	case ON(CM_STATE_MRA_REP_RCVD, CM_RTU):
		cm_set_state(id, CM_STATE_ESTABLISHED);
		cm_raise(id, CM_EVENT_ESTABLISHED, 0, message, path);
		break;
	case ON(CM_STATE_REQ_SENT, CM_REJ):
	case ON(CM_STATE_MRA_REQ_RCVD, CM_REJ):
	case ON(CM_STATE_REQ_RCVD, CM_REJ):
	case ON(CM_STATE_MRA_REQ_SENT, CM_REJ):
	case ON(CM_STATE_REP_SENT, CM_REJ):
	case ON(CM_STATE_MRA_REP_RCVD, CM_REJ):
		/* The peer still considers the QP connected, so it goes through TIMEWAIT (IBTA 12.9). */
		take_rej(id, path, message, message->rej.reason == CM_REJECT_STALE);
		break;
	case ON(CM_STATE_REP_RCVD, CM_REJ):
	case ON(CM_STATE_MRA_REP_SENT, CM_REJ):
	case ON(CM_STATE_ESTABLISHED, CM_REJ):
	case ON(CM_STATE_DREQ_SENT, CM_REJ):
		take_rej(id, path, message, true);
		break;
	case ON(CM_STATE_REP_SENT, CM_DREQ):
	case ON(CM_STATE_MRA_REP_RCVD, CM_DREQ):
		/* The RTU was lost, and the peer has already finished. */
	case ON(CM_STATE_ESTABLISHED, CM_DREQ):
	case ON(CM_STATE_DREQ_SENT, CM_DREQ):
		take_dreq(id, path, message);
		break;
	case ON(CM_STATE_TIMEWAIT, CM_DREQ):
		release_again(id, message);
		break;
	case ON(CM_STATE_DREQ_SENT, CM_DREP):
	case ON(CM_STATE_DREQ_RCVD, CM_DREP):
		take_drep(id, path, message);
		break;
	case ON(CM_STATE_SIDR_REQ_SENT, CM_SIDR_REP):
		take_sidr_rep(id, path, message);
		break;
	default:
		break;
	}
}

/*
 * ---- source check ---------------------------------------------------------------------------------------------------
 */

/* Checks that @message comes from the peer, because other hosts may guess the ids. */
static bool id_is_peer_of(const struct cm_id *id, const struct packet_path *path, const struct cm_message *message)
{
	if (!memcmp(&id->known.path.destination, &path->source, sizeof(path->source)))
		return true;
	cm_explain(id->cm, RULE_CM_SOURCE,
		   FIGURES(message->kind, id->known.local_comm_id, CM_GID_HIGH(path->source), CM_GID_LOW(path->source),
			   CM_GID_HIGH(id->known.path.destination), CM_GID_LOW(id->known.path.destination)));
	return false;
}

static void cm_answer_unknown_id(struct cm *cm, const struct packet_path *path, const struct cm_message *message,
				 const uint8_t *mad)
{
	struct packet_path back = cm_way_back(path);
	uint8_t answer[CM_MAD_BYTES];
	struct cm_message reply;

	if (cm_answer_unclaimed(mad, answer) && cm_unpack(answer, &reply) == CM_WELL_FORMED)
		cm_post(cm, &back, &reply);
	else if (message->kind != CM_DREP)
		cm_explain(cm, RULE_CM_UNKNOWN_ID,
			   FIGURES(message->kind, CM_GID_HIGH(path->source), CM_GID_LOW(path->source)));
}

static void cm_receive_message(struct cm *cm, const struct packet_path *path, const struct cm_message *message,
			       const uint8_t *mad, bool waited)
{
	struct cm_id *id;

	if (message->kind == CM_REQ || message->kind == CM_SIDR_REQ) {
		cm_take_request(cm, path, message, !waited && cm->config.grace_ms);
		return;
	}
	id = id_of_message(cm, path, message);
	if (!id)
		cm_answer_unknown_id(cm, path, message, mad);
	else if (id_is_peer_of(id, path, message))
		cm_step(id, path, message);
}

void cm_receive(struct cm *cm, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES], bool waited)
{
	struct cm_message message;
	struct cm_outbox outbox;
	enum cm_malformed wrong = cm_unpack(mad, &message);

	if (wrong != CM_WELL_FORMED) {
		cm_explain(cm, RULE_CM_MALFORMED,
			   FIGURES(CM_GID_HIGH(path->source), CM_GID_LOW(path->source), mad[0], mad[1], mad[2], mad[3],
				   (uint32_t)mad[16] << 8 | mad[17]));
		return;
	}
	cm_begin(cm, &outbox);
	cm_receive_message(cm, path, &message, mad, waited);
	cm_end(cm, &outbox);
}
