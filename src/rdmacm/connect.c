/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_connect(3), rdma_accept(3), rdma_establish(3), rdma_reject(3), rdma_notify(3), rdma_disconnect(3). A datagram
 * id has no connection: it asks for a QP number, or tells one (SIDR).
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "cm/hello.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"
#include "rdmacm/route.h"
#include "rdmacm/sockaddr.h"
#include "verbs/objects.h"

/* A field of three bits. */
enum { MOST_RETRIES = 7 };

/* Bytes of private data that each message carries, behind the hello header where there is one (rdma-cm 2.6). */
enum {
	REQ_PRIVATE_DATA = 92,
	SIDR_REQ_PRIVATE_DATA = 216,
	REP_PRIVATE_DATA = 196,
	SIDR_REP_PRIVATE_DATA = 136,
	REJ_PRIVATE_DATA = 148,
};

/* What is sent instead of a parameter that the program leaves out: the most. */
static const struct rdma_conn_param most = {
	.responder_resources = RDMA_MAX_RESP_RES,
	.initiator_depth = RDMA_MAX_INIT_DEPTH,
	.retry_count = MOST_RETRIES,
	.rnr_retry_count = MOST_RETRIES,
};

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static bool is_datagram(const struct user_cm_id *id)
{
	return id->base.qp_type == IBV_QPT_UD;
}

static int check_private_data(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param,
			      uint8_t room)
{
	if (param->private_data_len <= room)
		return 0;
	return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_PRIVATE_DATA, param->private_data_len, room);
}

static int check_resources(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param)
{
	const struct shared_device *device = id->path.device;

	if ((param->responder_resources != RDMA_MAX_RESP_RES &&
	     param->responder_resources > device->most_responder_resources) ||
	    (param->initiator_depth != RDMA_MAX_INIT_DEPTH && param->initiator_depth > device->most_initiator_depth))
		return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_RESOURCES, param->responder_resources,
			       param->initiator_depth, device->most_responder_resources, device->most_initiator_depth);
	return 0;
}

static struct cm_private data_of(const struct rdma_conn_param *param)
{
	uint8_t length = param->private_data ? param->private_data_len : 0;

	return (struct cm_private){.data = param->private_data, .length = length};
}

/* Header and private data of a request. Returns its length. */
static uint8_t fill_request_data(const struct user_cm_id *id, const struct rdma_conn_param *param, uint8_t *data)
{
	struct cm_private own = data_of(param);
	uint8_t header = 0;

	if (!cm_hello_pack((const struct sockaddr *)&id->path.source, (const struct sockaddr *)&id->path.destination,
			   data))
		header = CM_HELLO_BYTES;
	if (own.length)
		memcpy(data + header, own.data, own.length);
	return (uint8_t)(header + own.length);
}

static uint64_t service_of(const struct user_cm_id *id)
{
	const struct sockaddr *destination = (const struct sockaddr *)&id->path.destination;

	return cm_service_id((uint16_t)id->base.ps, address_port(destination));
}

/* The number of the QP or, of an id without one, what the program says. */
static uint32_t own_qpn(const struct user_cm_id *id, const struct rdma_conn_param *param)
{
	return id->base.qp ? id->base.qp->qp_num : param->qp_num;
}

static uint8_t own_srq(const struct user_cm_id *id, const struct rdma_conn_param *param)
{
	return id->base.qp ? id->base.srq || id->base.qp->srq : !!param->srq;
}

/* ---- the active side ------------------------------------------------------------------------------------------ */

static int send_request(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t data[REQ_PRIVATE_DATA] = {0};
	struct cm_request request = {
		.service_id = service_of(id),
		.qp_type = id->base.qp_type,
		.qpn = own_qpn(id, param),
		.path_mtu = id->path_mtu,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.retry_count = smaller(param->retry_count, MOST_RETRIES),
		.rnr_retry_count = smaller(param->rnr_retry_count, MOST_RETRIES),
		.flow_control = param->flow_control,
		.srq = own_srq(id, param),
		.packet_lifetime = path_lifetime(id),
		.ece_vendor = id->local_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.private_data = {.data = data, .length = fill_request_data(id, param, data)},
	};

	path_fill(id, &request.path);
	return cm_send_req(id->cm, &request);
}

static int send_sidr_request(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t data[SIDR_REQ_PRIVATE_DATA] = {0};
	struct cm_sidr_request request = {
		.service_id = service_of(id),
		.private_data = {.data = data, .length = fill_request_data(id, param, data)},
	};

	path_fill(id, &request.path);
	return cm_send_sidr_req(id->cm, &request);
}

static int connect_id(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t room = (is_datagram(id) ? SIDR_REQ_PRIVATE_DATA : REQ_PRIVATE_DATA) - CM_HELLO_BYTES;
	int error = id_check(id, ID_CALL_CONNECT);

	if (!error && !param && !id->base.qp && !is_datagram(id))
		error = -REFUSE(hca_of_id(id), "rdma_connect", EINVAL, RULE_RDMACM_NO_QP_NUMBER, 0);
	if (!param)
		param = &most;
	if (!error)
		error = check_private_data(id, "rdma_connect", param, room);
	if (!error && !is_datagram(id))
		error = check_resources(id, "rdma_connect", param);
	if (!error)
		error = id_make_cm(id);
	if (error)
		return error;
	id->responder_resources = smaller(param->responder_resources, id->path.device->most_responder_resources);
	id->initiator_depth = smaller(param->initiator_depth, id->path.device->most_initiator_depth);
	/* The answer may come before the call returns. */
	events_lock();
	id->connecting = true;
	events_unlock();
	id_change(id, ID_ROUTED, ID_CONNECT);
	error = is_datagram(id) ? send_sidr_request(id, param) : send_request(id, param);
	if (error) {
		id_change(id, ID_CONNECT, ID_ROUTED);
		id->connecting = false;
	}
	return error;
}

int softhca_rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *conn_param)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_connect");

	return id ? id_end_complete(id, connect_id(id, conn_param)) : -1;
}

int softhca_rdma_establish(struct rdma_cm_id *base)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_establish");
	const struct cm_private nothing = {0};
	int error;

	if (!id)
		return -1;
	error = id_check(id, ID_CALL_ESTABLISH);
	if (!error && base->qp)
		error = -REFUSE(hca_of_id(id), "rdma_establish", EINVAL, RULE_RDMACM_HAS_QP, base->qp->qp_num);
	if (!error)
		error = cm_send_rtu(id->cm, nothing);
	return id_end(id, error);
}

/* ---- the passive side ----------------------------------------------------------------------------------------- */

/* Whether a request is there to be answered. */
static int check_request(struct user_cm_id *id, const char *call)
{
	enum cm_state state = cm_id_state(id->cm);

	if (!id->connecting)
		return 0;
	return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_NO_REQUEST, name_figure(cm_state_name(state)));
}

static int send_sidr_reply(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_sidr_reply reply = {
		.status = CM_SIDR_VALID,
		.qpn = own_qpn(id, param),
		.qkey = RDMA_UDP_QKEY,
		.private_data = data_of(param),
	};

	return cm_send_sidr_rep(id->cm, &reply);
}

static int send_reply(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_reply reply = {
		.qpn = own_qpn(id, param),
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.rnr_retry_count = smaller(param->rnr_retry_count, MOST_RETRIES),
		.flow_control = param->flow_control,
		.srq = own_srq(id, param),
		.ece_vendor = id->local_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.private_data = data_of(param),
	};

	return cm_send_rep(id->cm, &reply);
}

/* A parameter that is left out, or "the most", is as much as the request asks for and the device has. */
static void choose_resources(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	if (param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	id->responder_resources = smaller(id->responder_resources, id->path.device->most_responder_resources);
	id->initiator_depth = smaller(id->initiator_depth, id->path.device->most_initiator_depth);
}

static int accept_connection(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	const struct cm_private nothing = {0};
	int error = check_resources(id, "rdma_accept", param);

	if (error)
		return error;
	choose_resources(id, param);
	if (id->base.qp)
		error = qp_connect(id, id->responder_resources, id->initiator_depth);
	if (error)
		return error;
	/* The RTU may come before the call returns. */
	events_lock();
	id->connecting = true;
	events_unlock();
	error = send_reply(id, param);
	if (error) {
		qp_fail(id);
		cm_send_rej(id->cm, CM_REJECT_CONSUMER, nothing, nothing);
	}
	return error;
}

static int accept_id(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	int error = id_check(id, ID_CALL_ACCEPT);

	if (!error)
		error = check_request(id, "rdma_accept");
	if (!error && !param && !id->base.qp)
		error = -REFUSE(hca_of_id(id), "rdma_accept", EINVAL, RULE_RDMACM_NO_QP_NUMBER, 0);
	if (!param)
		param = &most;
	if (!error)
		error = check_private_data(id, "rdma_accept", param,
					   is_datagram(id) ? SIDR_REP_PRIVATE_DATA : REP_PRIVATE_DATA);
	if (error)
		return error;
	if (!is_datagram(id))
		return accept_connection(id, param);
	error = send_sidr_reply(id, param);
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
	if (!is_datagram(id))
		return id_end_complete(id, accept_id(id, conn_param));
	/* No event follows: a synchronous id is done with its request. */
	result = accept_id(id, conn_param);
	request = !result && id->synchronous ? base->event : NULL;
	if (request)
		base->event = NULL;
	result = id_end(id, result);
	if (request)
		softhca_rdma_ack_cm_event(request);
	return result;
}

static int reject_id(struct user_cm_id *id, const char *call, const struct rdma_conn_param *param, uint16_t reason)
{
	const struct cm_sidr_reply refusal = {.status = CM_SIDR_REJECTED, .private_data = data_of(param)};
	const struct cm_private nothing = {0};
	int error = id_check(id, ID_CALL_REJECT);

	if (!error)
		error = check_private_data(id, call, param, is_datagram(id) ? SIDR_REP_PRIVATE_DATA : REJ_PRIVATE_DATA);
	if (error)
		return error;
	if (is_datagram(id))
		return cm_send_sidr_rep(id->cm, &refusal);
	return cm_send_rej(id->cm, reason, nothing, data_of(param));
}

int softhca_rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	WITHOUT_CANCELLATION;
	struct rdma_conn_param param = {.private_data = private_data, .private_data_len = private_data_len};
	struct user_cm_id *id = id_begin(base, "rdma_reject");

	return id ? id_end(id, reject_id(id, "rdma_reject", &param, CM_REJECT_CONSUMER)) : -1;
}

int softhca_rdma_reject_ece(struct rdma_cm_id *base, const void *private_data, uint8_t private_data_len)
{
	WITHOUT_CANCELLATION;
	struct rdma_conn_param param = {.private_data = private_data, .private_data_len = private_data_len};
	struct user_cm_id *id = id_begin(base, "rdma_reject_ece");

	return id ? id_end(id, reject_id(id, "rdma_reject_ece", &param, CM_REJECT_VENDOR_OPTION)) : -1;
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

/* ---- both ----------------------------------------------------------------------------------------------------- */

/* A connection may be ended in whatever state it is. */
static void say_goodbye(struct user_cm_id *id)
{
	const struct cm_private nothing = {0};

	switch (cm_id_state(id->cm)) {
	case CM_STATE_ESTABLISHED:
		cm_send_dreq(id->cm, nothing);
		break;
	case CM_STATE_DREQ_RCVD:
		cm_send_drep(id->cm, nothing);
		break;
	default:
		break;
	}
}

int softhca_rdma_disconnect(struct rdma_cm_id *base)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_disconnect");
	int error;

	if (!id)
		return -1;
	error = id_check(id, ID_CALL_DISCONNECT);
	if (!error && !id->connecting)
		error = -REFUSE(hca_of_id(id), "rdma_disconnect", EINVAL, RULE_RDMACM_NOT_ANSWERED, 0);
	if (!error) {
		qp_fail(id);
		say_goodbye(id);
	}
	return id_end_complete(id, error);
}
