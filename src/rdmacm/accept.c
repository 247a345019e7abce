/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_accept(3), rdma_reject(3), rdma_notify(3). The reply of a datagram ID contains the number of its QP (SIDR). */
#include <errno.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/conn_param.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"

static int request_missing(const struct user_cm_id *id, const char *call)
{
	return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_NO_REQUEST, cm_id_state(id->cm));
}

static int id_check_request(const struct user_cm_id *id, const char *call)
{
	return id->connecting ? request_missing(id, call) : 0;
}

/* Checks that there is a request, or a response to this ID's own request, to reject (IBTA 12.6.7). */
static int id_check_rejectable(const struct user_cm_id *id, const char *call)
{
	enum cm_state state = cm_id_state(id->cm);

	if (!id->connecting || state == CM_STATE_REP_RCVD || state == CM_STATE_MRA_REP_SENT)
		return 0;
	return request_missing(id, call);
}

static int id_send_sidr_reply(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_sidr_reply reply = {
		.status = CM_SIDR_VALID,
		.qpn = conn_qpn(id, param),
		.qkey = RDMA_UDP_QKEY,
		.private_data = conn_private(param),
	};

	return cm_send_sidr_rep(id->cm, &reply);
}

static int id_send_reply(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_reply reply = {
		.qpn = conn_qpn(id, param),
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.rnr_retry_count = conn_smaller(param->rnr_retry_count, CONN_MOST_RETRIES),
		.flow_control = param->flow_control,
		.srq = conn_srq(id, param),
		.ece_options = id->local_ece.options,
		.private_data = conn_private(param),
	};

	return cm_send_rep(id->cm, &reply);
}

/* Replaces omitted values and "maximum" by the minimum of request and device. */
static void id_choose_resources(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	if (param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	id->responder_resources = conn_smaller(id->responder_resources, id->path.device->most_responder_resources);
	id->initiator_depth = conn_smaller(id->initiator_depth, id->path.device->most_initiator_depth);
}

static int id_accept_connection(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	const struct cm_private nothing = {0};
	int error = conn_check_resources(id, "rdma_accept", param);

	if (error)
		return error;
	id_choose_resources(id, param);
	if (id->base.qp)
		error = qp_connect(id, id->responder_resources, id->initiator_depth);
	if (error)
		return error;
	/* The RTU may arrive before the call returns. */
	events_lock();
	id->connecting = true;
	events_unlock();
	error = id_send_reply(id, param);
	if (error) {
		qp_fail(id);
		cm_send_rej(id->cm, CM_REJECT_CONSUMER, nothing, nothing);
	}
	return error;
}

static int id_accept(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	int error = id_check(id, ID_CALL_ACCEPT);

	if (!error)
		error = id_check_request(id, "rdma_accept");
	if (!error && !param && !id->base.qp)
		error = -REFUSE(hca_of_id(id), "rdma_accept", EINVAL, RULE_RDMACM_NO_QP_NUMBER, 0);
	if (!error)
		error = conn_check_qp(id, "rdma_accept");
	if (!param)
		param = &conn_most;
	if (!error)
		error = conn_check_private_data(id, "rdma_accept", param,
						id_is_datagram(id) ? SIDR_REP_PRIVATE_DATA : REP_PRIVATE_DATA);
	if (error)
		return error;
	if (!id_is_datagram(id))
		return id_accept_connection(id, param);
	error = id_send_sidr_reply(id, param);
	if (!error)
		id->connecting = true;
	return error;
}

int softhca_rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *conn_param)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_accept");
	struct rdma_cm_event *request;
	int result;

	if (!id)
		return -1;
	if (!id_is_datagram(id))
		return id_end_complete(id, id_accept(id, conn_param));
	/* No event follows, so a synchronous ID releases its request. */
	result = id_accept(id, conn_param);
	request = !result && id->synchronous ? base->event : NULL;
	if (request)
		base->event = NULL;
	result = id_end(id, result);
	if (request)
		softhca_rdma_ack_cm_event(request);
	return result;
}

static int id_reject(struct user_cm_id *id, const char *call, const struct rdma_conn_param *param, uint16_t reason)
{
	const struct cm_sidr_reply refusal = {.status = CM_SIDR_REJECTED, .private_data = conn_private(param)};
	const struct cm_private nothing = {0};
	int error = id_check(id, ID_CALL_REJECT);

	if (!error)
		error = id_check_rejectable(id, call);
	if (!error)
		error = conn_check_private_data(id, call, param,
						id_is_datagram(id) ? SIDR_REP_PRIVATE_DATA : REJ_PRIVATE_DATA);
	if (error)
		return error;
	if (id_is_datagram(id))
		return cm_send_sidr_rep(id->cm, &refusal);
	return cm_send_rej(id->cm, reason, nothing, conn_private(param));
}

int softhca_rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	WITHOUT_CANCELLATION;
	struct rdma_conn_param param = {.private_data = private_data, .private_data_len = private_data_len};
	struct user_cm_id *id = id_begin(base, "rdma_reject");

	return id ? id_end(id, id_reject(id, "rdma_reject", &param, CM_REJECT_CONSUMER)) : -1;
}

int softhca_rdma_reject_ece(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	WITHOUT_CANCELLATION;
	struct rdma_conn_param param = {.private_data = private_data, .private_data_len = private_data_len};
	struct user_cm_id *id = id_begin(base, "rdma_reject_ece");

	return id ? id_end(id, id_reject(id, "rdma_reject_ece", &param, CM_REJECT_VENDOR_OPTION)) : -1;
}

int softhca_rdma_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_notify");
	int error;

	if (!id)
		return -1;
	error = id_check(id, ID_CALL_NOTIFY);
	if (!error && event != IBV_EVENT_COMM_EST)
		error = -REFUSE(hca_of_id(id), "rdma_notify", EINVAL, RULE_RDMACM_NOTIFY, event);
	if (!error)
		error = cm_establish(id->cm);
	return id_end(id, error);
}
