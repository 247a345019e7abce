/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_init_qp_attr(3), and the library's own transitions; see queue_pair.h. */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"
#include "rdmacm/route.h"
#include "verbs/object/alive.h"
#include "verbs/object/ops.h"

/* Code of the longest RNR NAK timer: 655 ms (IBTA table 45). */
enum { RNR_TIMER_LONGEST = 0 };

struct ibv_qp *qp_of_id(const struct user_cm_id *id)
{
	struct ibv_qp *qp = id->base.qp;

	return qp && object_alive(qp) ? qp : NULL;
}

void ah_attributes(const struct user_cm_id *id, struct ibv_ah_attr *attr)
{
	struct packet_path path;

	path_fill(id, &path);
	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.sl = path.service_level,
		.grh = {.dgid = path.destination,
			.flow_label = path.flow_label,
			.sgid_index = (uint8_t)id->path.sgid_index,
			.hop_limit = path.hop_limit,
			.traffic_class = path.traffic_class},
	};
}

/* True after a REQ was sent or received. */
static bool cm_state_has_request(enum cm_state state)
{
	switch (state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
	case CM_STATE_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

/* True once the peer's QP number and PSN have arrived. */
static bool cm_state_has_peer(enum cm_state state)
{
	return cm_state_has_request(state) && state != CM_STATE_REQ_SENT && state != CM_STATE_MRA_REQ_RCVD;
}

static int attributes_to_init(const struct user_cm_id *id, const struct cm_parameters *parameters,
			      struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->pkey_index = 0;
	attr->port_num = id->base.port_num;
	if (id->base.qp_type == IBV_QPT_UD) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return 0;
	}
	*mask |= IBV_QP_ACCESS_FLAGS;
	attr->qp_access_flags = 0;
	if (parameters->state == CM_STATE_IDLE)
		return 0;
	if (!cm_state_has_request(parameters->state))
		return -EINVAL;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (parameters->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

static int attributes_to_rtr(const struct user_cm_id *id, const struct cm_parameters *parameters,
			     struct ibv_qp_attr *attr, int *mask)
{
	if (!cm_state_has_peer(parameters->state))
		return -EINVAL;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	ah_attributes(id, &attr->ah_attr);
	attr->path_mtu = parameters->path_mtu;
	attr->dest_qp_num = parameters->remote_qpn;
	attr->rq_psn = parameters->rq_psn;
	if (id->base.qp_type == IBV_QPT_RC || id->base.qp_type == IBV_QPT_XRC_RECV) {
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = parameters->responder_resources;
		attr->min_rnr_timer = RNR_TIMER_LONGEST;
	}
	return 0;
}

static int attributes_to_rts(const struct user_cm_id *id, const struct cm_parameters *parameters,
			     struct ibv_qp_attr *attr, int *mask)
{
	if (!cm_state_has_peer(parameters->state))
		return -EINVAL;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = parameters->sq_psn;
	if (id->base.qp_type == IBV_QPT_UC)
		return 0;
	*mask |= IBV_QP_TIMEOUT;
	attr->timeout = id->ack_timeout_set ? id->ack_timeout : parameters->ack_timeout;
	if (id->base.qp_type == IBV_QPT_RC || id->base.qp_type == IBV_QPT_XRC_SEND) {
		*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->retry_cnt = parameters->retry_count;
		attr->rnr_retry = parameters->rnr_retry_count;
		attr->max_rd_atomic = parameters->initiator_depth;
	}
	return 0;
}

int qp_attributes(struct user_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct cm_parameters parameters = {.state = CM_STATE_IDLE};
	bool connected = id->base.qp_type != IBV_QPT_UD;
	int error = -EINVAL;

	if (!id->path.device)
		return -REFUSE(hca_of_id(id), "rdma_init_qp_attr", EINVAL, RULE_RDMACM_UNBOUND, 0);
	if (id->cm && connected)
		cm_id_query(id->cm, &parameters);
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		error = attributes_to_init(id, &parameters, attr, mask);
		break;
	case IBV_QPS_RTR:
		if (connected)
			error = attributes_to_rtr(id, &parameters, attr, mask);
		break;
	case IBV_QPS_RTS:
		if (connected)
			error = attributes_to_rts(id, &parameters, attr, mask);
		break;
	default:
		break;
	}
	if (error)
		return -REFUSE(hca_of_id(id), "rdma_init_qp_attr", -error, RULE_RDMACM_QP_ATTR, attr->qp_state,
			       parameters.state);
	return 0;
}

static int id_modify_qp(struct user_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int mask, error;

	attr->qp_state = state;
	error = qp_attributes(id, attr, &mask);
	return error ? error : -softhca_ibv_modify_qp(id->base.qp, attr, mask);
}

static uint8_t resources_at_most(uint8_t wanted, uint8_t most)
{
	return wanted < most ? wanted : most;
}

int qp_connect(struct user_cm_id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr = {0};
	int mask, error;

	if (!qp_of_id(id))
		return -EINVAL;
	error = id_modify_qp(id, IBV_QPS_INIT, &attr);
	if (error)
		return error;
	attr.qp_state = IBV_QPS_RTR;
	error = qp_attributes(id, &attr, &mask);
	if (error)
		return error;
	if (responder_resources != RDMA_MAX_RESP_RES)
		attr.max_dest_rd_atomic = responder_resources;
	/* A peer may offer more than this device supports. */
	attr.max_dest_rd_atomic = resources_at_most(attr.max_dest_rd_atomic, id->path.device->most_responder_resources);
	error = -softhca_ibv_modify_qp(id->base.qp, &attr, mask);
	if (error)
		return error;
	attr.qp_state = IBV_QPS_RTS;
	error = qp_attributes(id, &attr, &mask);
	if (error)
		return error;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH)
		attr.max_rd_atomic = initiator_depth;
	attr.max_rd_atomic = resources_at_most(attr.max_rd_atomic, id->path.device->most_initiator_depth);
	return -softhca_ibv_modify_qp(id->base.qp, &attr, mask);
}

void qp_fail(struct user_cm_id *id)
{
	struct ibv_qp *qp = qp_of_id(id);

	if (qp)
		user_qp_disconnect(qp);
}

int softhca_rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_init_qp_attr");

	return id ? id_end(id, qp_attributes(id, qp_attr, qp_attr_mask)) : -1;
}
