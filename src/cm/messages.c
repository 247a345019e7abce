/* SPDX-License-Identifier: BSD-2-Clause */
/* Field values are those of Linux. */
#include "cm/manager.h"

#include <string.h>

#include "cm/timeouts.h"

bool cm_put_private(uint8_t *field, size_t size, struct cm_private from)
{
	if (from.length > size)
		return false;
	if (from.length)
		memcpy(field, from.data, from.length);
	return true;
}

void cm_send_until_answered(struct cm_id *id, uint64_t wait_ms)
{
	id->sends = 1;
	id->wait_ns = wait_ms * CM_MS;
	cm_post(id->cm, &id->known.path, &id->sent);
	cm_arm(id->cm, &id->timer, id->wait_ns);
}

struct cm_message cm_answer(const struct cm_id *id, enum cm_message_kind kind)
{
	struct cm_message message;
	uint32_t local = id->known.local_comm_id, remote = id->known.remote_comm_id;

	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.transaction_id = id->transaction_id;
	switch (kind) {
	case CM_MRA:
		message.mra.local_comm_id = local;
		message.mra.remote_comm_id = remote;
		break;
	case CM_REJ:
		message.rej.local_comm_id = local;
		message.rej.remote_comm_id = remote;
		break;
	case CM_REP:
		message.rep.local_comm_id = local;
		message.rep.remote_comm_id = remote;
		break;
	case CM_RTU:
		message.rtu.local_comm_id = local;
		message.rtu.remote_comm_id = remote;
		break;
	case CM_DREQ:
		message.dreq.local_comm_id = local;
		message.dreq.remote_comm_id = remote;
		break;
	case CM_DREP:
		message.drep.local_comm_id = local;
		message.drep.remote_comm_id = remote;
		break;
	default:
		break;
	}
	return message;
}

void cm_send_once(struct cm_id *id, const struct cm_message *message)
{
	cm_post(id->cm, &id->known.path, message);
}

void cm_send_mra(struct cm_id *id)
{
	struct cm_message mra = cm_answer(id, CM_MRA);

	mra.mra.message_acknowledged = id->state == CM_STATE_MRA_REQ_SENT ? CM_NAMED_REQ : CM_NAMED_REP;
	mra.mra.service_timeout = CM_SERVICE_TIMEOUT;
	cm_send_once(id, &mra);
}

void cm_post_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data)
{
	struct cm_message rej = cm_answer(id, CM_REJ);

	rej.rej.reason = reason;
	rej.rej.info_length = info.length;
	cm_put_private(rej.rej.info, sizeof(rej.rej.info), info);
	cm_put_private(rej.rej.private_data, sizeof(rej.rej.private_data), private_data);
	switch (id->state) {
	case CM_STATE_REQ_RCVD:
		/* The peer never received this id. */
		rej.rej.local_comm_id = 0;
		rej.rej.message_rejected = CM_NAMED_REQ;
		break;
	case CM_STATE_MRA_REQ_SENT:
		rej.rej.message_rejected = CM_NAMED_REQ;
		break;
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
		rej.rej.message_rejected = CM_NAMED_REP;
		break;
	default:
		rej.rej.message_rejected = CM_NAMED_OTHER;
		break;
	}
	cm_send_once(id, &rej);
}

void cm_refuse(struct cm *cm, const struct packet_path *path, const struct cm_message *request, uint16_t reason)
{
	struct packet_path back = cm_way_back(path);
	struct cm_message rej = {.kind = CM_REJ, .transaction_id = request->transaction_id};

	rej.rej.reason = reason;
	if (request->kind == CM_REQ) {
		rej.rej.remote_comm_id = request->req.local_comm_id;
		rej.rej.message_rejected = CM_NAMED_REQ;
	} else {
		rej.rej.local_comm_id = request->rep.remote_comm_id;
		rej.rej.remote_comm_id = request->rep.local_comm_id;
		rej.rej.message_rejected = CM_NAMED_REP;
	}
	cm_post(cm, &back, &rej);
}

void cm_begin_release(struct cm_id *id, struct cm_private private_data)
{
	const struct cm_config *config = &id->cm->config;
	uint64_t wait_ms = id->wait_ns / CM_MS;

	id->transaction_id = config->functions->random(config->context);
	id->sent = cm_answer(id, CM_DREQ);
	id->sent.dreq.remote_qpn = id->known.remote_qpn;
	cm_put_private(id->sent.dreq.private_data, sizeof(id->sent.dreq.private_data), private_data);
	cm_set_state(id, CM_STATE_DREQ_SENT);
	cm_send_until_answered(id, wait_ms);
}

void cm_post_sidr_rep(struct cm_id *id, const struct cm_sidr_reply *reply)
{
	struct cm_message message = {.kind = CM_SIDR_REP, .transaction_id = id->transaction_id};
	struct cm_sidr_rep *sidr_rep = &message.sidr_rep;

	sidr_rep->request_id = id->known.remote_comm_id;
	sidr_rep->status = (uint8_t)reply->status;
	sidr_rep->service_id = id->known.service_id;
	if (reply->status == CM_SIDR_VALID) {
		sidr_rep->qpn = reply->qpn;
		sidr_rep->qkey = reply->qkey;
	}
	sidr_rep->info_length = reply->info.length;
	cm_put_private(sidr_rep->info, sizeof(sidr_rep->info), reply->info);
	cm_put_private(sidr_rep->private_data, sizeof(sidr_rep->private_data), reply->private_data);
	cm_send_once(id, &message);
}
