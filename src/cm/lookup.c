/* SPDX-License-Identifier: BSD-2-Clause */
/* Service id resolution (SIDR, IBTA 12.11), which provides QP numbers for datagrams. */
#include "cm/manager.h"

#include <errno.h>

#include "cm/timeouts.h"

static int sidr_send_req(struct cm_id *id, const struct cm_sidr_request *request)
{
	struct cm_sidr_req *sidr_req = &id->sent.sidr_req;
	int error;

	if (!cm_id_is_free(id))
		return cm_wrong_state(id, "rdma_connect");
	if (request->private_data.length > sizeof(sidr_req->private_data))
		return -EINVAL;
	error = cm_id_name(id);
	if (error)
		return error;
	cm_begin_active(id);
	id->known = (struct cm_parameters){.service_id = request->service_id,
					   .local_comm_id = id->known.local_comm_id,
					   .path = request->path,
					   .qp_type = IBV_QPT_UD};
	id->sent.kind = CM_SIDR_REQ;
	id->sent.transaction_id = id->transaction_id;
	sidr_req->request_id = id->known.local_comm_id;
	sidr_req->pkey = CM_DEFAULT_PKEY;
	sidr_req->service_id = request->service_id;
	cm_put_private(sidr_req->private_data, sizeof(sidr_req->private_data), request->private_data);
	cm_set_state(id, CM_STATE_SIDR_REQ_SENT);
	cm_send_until_answered(id, cm_code_ms(id->cm->config.response_timeout));
	return 0;
}

int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_request *request)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = sidr_send_req(id, request);
	cm_end(id->cm, &outbox);
	return error;
}

static int sidr_send_rep(struct cm_id *id, const struct cm_sidr_reply *reply)
{
	if (id->state != CM_STATE_SIDR_REQ_RCVD)
		return cm_wrong_state(id, reply->status == CM_SIDR_VALID ? "rdma_accept" : "rdma_reject");
	if (reply->info.length > sizeof(id->sent.sidr_rep.info) ||
	    reply->private_data.length > sizeof(id->sent.sidr_rep.private_data))
		return -EINVAL;
	cm_post_sidr_rep(id, reply);
	cm_to_idle(id);
	return 0;
}

int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_reply *reply)
{
	struct cm_outbox outbox;
	int error;

	cm_begin(id->cm, &outbox);
	error = sidr_send_rep(id, reply);
	cm_end(id->cm, &outbox);
	return error;
}
