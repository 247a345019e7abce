/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_connect(3), rdma_establish(3), rdma_disconnect(3). A datagram ID requests a QP number (SIDR). */
#include <errno.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "cm/hello.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/conn_param.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"
#include "rdmacm/route.h"
#include "rdmacm/sockaddr.h"

/* Returns the length of header and private data. */
static uint8_t request_fill_data(const struct user_cm_id *id, const struct rdma_conn_param *param, uint8_t *data)
{
	struct cm_private own = conn_private(param);
	uint8_t header = 0;

	if (!cm_hello_pack((const struct sockaddr *)&id->path.source, (const struct sockaddr *)&id->path.destination,
			   data))
		header = CM_HELLO_BYTES;
	if (own.length)
		memcpy(data + header, own.data, own.length);
	return (uint8_t)(header + own.length);
}

static uint64_t id_service(const struct user_cm_id *id)
{
	const struct sockaddr *destination = (const struct sockaddr *)&id->path.destination;

	return cm_service_id((uint16_t)id->base.ps, address_port(destination));
}

static int id_send_request(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t data[REQ_PRIVATE_DATA] = {0};
	struct cm_request request = {
		.service_id = id_service(id),
		.qp_type = id->base.qp_type,
		.qpn = conn_qpn(id, param),
		.path_mtu = id->path_mtu,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.retry_count = conn_smaller(param->retry_count, CONN_MOST_RETRIES),
		.rnr_retry_count = conn_smaller(param->rnr_retry_count, CONN_MOST_RETRIES),
		.flow_control = param->flow_control,
		.srq = conn_srq(id, param),
		.packet_lifetime = path_lifetime(id),
		.ece_vendor = id->local_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.private_data = {.data = data, .length = request_fill_data(id, param, data)},
	};

	path_fill(id, &request.path);
	return cm_send_req(id->cm, &request);
}

static int id_send_sidr_request(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t data[SIDR_REQ_PRIVATE_DATA] = {0};
	struct cm_sidr_request request = {
		.service_id = id_service(id),
		.private_data = {.data = data, .length = request_fill_data(id, param, data)},
	};

	path_fill(id, &request.path);
	return cm_send_sidr_req(id->cm, &request);
}

/* Requests of AF_IB have no hello header (rdma-cm 3.3). */
static uint8_t id_request_room(const struct user_cm_id *id)
{
	uint8_t field = id_is_datagram(id) ? SIDR_REQ_PRIVATE_DATA : REQ_PRIVATE_DATA;

	return id->path.destination.ss_family == AF_IB ? field : (uint8_t)(field - CM_HELLO_BYTES);
}

static int id_connect(struct user_cm_id *id, const struct rdma_conn_param *param)
{
	int error = id_check(id, ID_CALL_CONNECT);

	if (!error && !param && !id->base.qp && !id_is_datagram(id))
		error = -REFUSE(hca_of_id(id), "rdma_connect", EINVAL, RULE_RDMACM_NO_QP_NUMBER, 0);
	if (!param)
		param = &conn_most;
	if (!error)
		error = conn_check_private_data(id, "rdma_connect", param, id_request_room(id));
	/* A SIDR_REQ does not describe the QP. */
	if (!error && !id_is_datagram(id))
		error = conn_check_qp(id, "rdma_connect");
	if (!error && !id_is_datagram(id))
		error = conn_check_resources(id, "rdma_connect", param);
	if (!error)
		error = id_make_cm(id);
	if (error)
		return error;
	id->responder_resources = conn_smaller(param->responder_resources, id->path.device->most_responder_resources);
	id->initiator_depth = conn_smaller(param->initiator_depth, id->path.device->most_initiator_depth);
	/* The reply may arrive before the call returns. */
	events_lock();
	id->connecting = true;
	events_unlock();
	id_change(id, ID_ROUTED, ID_CONNECT);
	error = id_is_datagram(id) ? id_send_sidr_request(id, param) : id_send_request(id, param);
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

	return id ? id_end_complete(id, id_connect(id, conn_param)) : -1;
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
	if (!error)
		error = conn_check_qp(id, "rdma_establish");
	if (!error && base->qp)
		error = -REFUSE(hca_of_id(id), "rdma_establish", EINVAL, RULE_RDMACM_HAS_QP, base->qp->qp_num);
	if (!error)
		error = cm_send_rtu(id->cm, nothing);
	return id_end(id, error);
}

static void id_disconnect(struct user_cm_id *id)
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
		id_disconnect(id);
	}
	return id_end_complete(id, error);
}
