/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_qp(3), rdma_create_qp_ex(), rdma_destroy_qp(3), rdma_set_local_ece(3), rdma_get_remote_ece(3). */
#include "rdmacm/queue_pair.h"

#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/conn_param.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

static void id_destroy_cqs(struct user_cm_id *id)
{
	struct rdma_cm_id *base = &id->base;

	/* An SRQ's receive CQ is destroyed with the SRQ. */
	if (base->recv_cq && !id->own_srq_cq) {
		softhca_ibv_destroy_cq(base->recv_cq);
		base->recv_cq = NULL;
	}
	if (base->recv_cq_channel && !id->own_srq_cq) {
		softhca_ibv_destroy_comp_channel(base->recv_cq_channel);
		base->recv_cq_channel = NULL;
	}
	if (base->send_cq) {
		softhca_ibv_destroy_cq(base->send_cq);
		base->send_cq = NULL;
	}
	if (base->send_cq_channel) {
		softhca_ibv_destroy_comp_channel(base->send_cq_channel);
		base->send_cq_channel = NULL;
	}
	id->own_cqs = false;
}

/* The context of the CQ is the ID: rdma_get_send_comp(3) relies on that. */
static int id_create_cq(struct rdma_cm_id *base, uint32_t entries, struct ibv_comp_channel **channel,
			struct ibv_cq **cq)
{
	*channel = softhca_ibv_create_comp_channel(base->verbs);
	if (!*channel)
		return -errno;
	*cq = softhca_ibv_create_cq(base->verbs, (int)entries, base, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Creates CQs for directions with work requests for which the program passes none. */
static int id_provide_cqs(struct user_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *base = &id->base;
	int error = 0;

	if (!attr->recv_cq && attr->cap.max_recv_wr && !base->recv_cq) {
		error = id_create_cq(base, attr->cap.max_recv_wr, &base->recv_cq_channel, &base->recv_cq);
		id->own_cqs = true;
	}
	if (!error && !attr->send_cq && attr->cap.max_send_wr && !base->send_cq) {
		error = id_create_cq(base, attr->cap.max_send_wr, &base->send_cq_channel, &base->send_cq);
		id->own_cqs = true;
	}
	if (error) {
		id_destroy_cqs(id);
		return error;
	}
	if (!attr->recv_cq)
		attr->recv_cq = base->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = base->send_cq;
	return 0;
}

static int qp_change_state(struct user_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state, int more)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = IBV_QP_STATE, error = 0;

	if (state == IBV_QPS_INIT)
		error = qp_attributes(id, &attr, &mask);
	return error ? error : -softhca_ibv_modify_qp(qp, &attr, mask | more);
}

/* Moves a QP to INIT, or a UD QP, which needs no peer, to RTS (rdma_create_qp(3)). */
static int id_ready_qp(struct user_cm_id *id, struct ibv_qp *qp)
{
	int error = qp_change_state(id, qp, IBV_QPS_INIT, 0);

	if (error || id->base.qp_type != IBV_QPT_UD)
		return error;
	error = qp_change_state(id, qp, IBV_QPS_RTR, 0);
	return error ? error : qp_change_state(id, qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/*
 * Negotiates ECE (ibv_query_ece(3)): a request contains the options of this QP; a child accepts those of its request
 * from the same vendor. EOPNOTSUPP (a device without options) is not an error.
 */
static void id_agree_on_ece(struct user_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = {0}, wanted;

	if (softhca_ibv_query_ece(qp, &ece))
		return;
	if (id->remote_ece.vendor_id) {
		wanted = ece;
		wanted.options = id->remote_ece.vendor_id == ece.vendor_id ? id->remote_ece.options : 0;
		if (!softhca_ibv_set_ece(qp, &wanted) && softhca_ibv_query_ece(qp, &ece))
			return;
	}
	id->local_ece = ece;
}

static int id_create_qp(struct user_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *base = &id->base;
	struct ibv_qp *qp;
	int error;

	error = conn_check_qp(id, "rdma_create_qp");
	if (error)
		return error;
	if (base->qp)
		return -REFUSE(hca_of_id(id), "rdma_create_qp", EINVAL, RULE_RDMACM_HAS_QP, base->qp->qp_num);
	if (!base->verbs)
		return -REFUSE(hca_of_id(id), "rdma_create_qp", EINVAL, RULE_RDMACM_UNBOUND, 0);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = base->pd;
	} else if (attr->pd->context != base->verbs) {
		return -REFUSE(hca_of_id(id), "rdma_create_qp", EINVAL, RULE_RDMACM_FOREIGN_PD, (uintptr_t)attr->pd);
	}
	if ((base->recv_cq && attr->recv_cq && base->recv_cq != attr->recv_cq) ||
	    (base->send_cq && attr->send_cq && base->send_cq != attr->send_cq))
		return -REFUSE(hca_of_id(id), "rdma_create_qp", EINVAL, RULE_RDMACM_TWO_CQS, 0);
	if (base->qp_type == IBV_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		attr->xrcd = device_xrcd(id->path.device);
		if (!attr->xrcd)
			return -errno;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	error = id_provide_cqs(id, attr);
	if (error)
		return error;
	if (!attr->srq)
		attr->srq = base->srq;
	qp = user_qp_create(base->verbs, attr, NULL);
	if (!qp) {
		error = -errno;
		goto no_cqs;
	}
	id_agree_on_ece(id, qp);
	error = id_ready_qp(id, qp);
	if (error)
		goto no_qp;
	base->pd = attr->pd;
	base->qp = qp;
	return 0;

no_qp:
	softhca_ibv_destroy_qp(qp);
no_cqs:
	if (id->own_cqs)
		id_destroy_cqs(id);
	return error;
}

int softhca_rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_create_qp");

	return id ? id_end(id, id_create_qp(id, qp_init_attr)) : -1;
}

int softhca_rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {0};
	int result;

	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
	attr.pd = pd;
	result = softhca_rdma_create_qp_ex(base, &attr);
	memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return result;
}

void softhca_rdma_destroy_qp(struct rdma_cm_id *base)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = to_user_cm_id(base);

	/* If the program has destroyed the QP, only the pointer is cleared (rdma-cm 4.1). */
	if (qp_of_id(id))
		softhca_ibv_destroy_qp(base->qp);
	base->qp = NULL;
	if (id->own_cqs)
		id_destroy_cqs(id);
}

int softhca_rdma_set_local_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
	struct user_cm_id *id;

	if (base->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return result_of(-REFUSE(hca_of_id(to_user_cm_id(base)), "rdma_set_local_ece", EINVAL, RULE_RDMACM_ECE,
					 !!base->qp, ece ? ece->vendor_id : 0, ece ? ece->comp_mask : 0));
	id = id_begin(base, "rdma_set_local_ece");
	if (!id)
		return -1;
	id->local_ece = *ece;
	return id_end(id, 0);
}

int softhca_rdma_get_remote_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
	struct user_cm_id *id;

	if (base->qp || !ece)
		return result_of(-REFUSE(hca_of_id(to_user_cm_id(base)), "rdma_get_remote_ece", EINVAL, RULE_RDMACM_ECE,
					 !!base->qp, 0, 0));
	id = id_begin(base, "rdma_get_remote_ece");
	if (!id)
		return -1;
	*ece = id->remote_ece;
	return id_end(id, 0);
}
