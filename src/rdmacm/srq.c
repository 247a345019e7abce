/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_create_srq(3), rdma_create_srq_ex(), rdma_destroy_srq(3). */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "verbs/object/ops.h"

static void srq_destroy_cq(struct user_cm_id *id)
{
	if (id->base.recv_cq)
		softhca_ibv_destroy_cq(id->base.recv_cq);
	if (id->base.recv_cq_channel)
		softhca_ibv_destroy_comp_channel(id->base.recv_cq_channel);
	id->base.recv_cq = NULL;
	id->base.recv_cq_channel = NULL;
	id->own_srq_cq = false;
}

/* Receives of an XRC SRQ complete in a CQ of the SRQ. */
static int srq_provide_cq(struct user_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		return 0;
	if (!id->base.recv_cq) {
		id->base.recv_cq_channel = softhca_ibv_create_comp_channel(id->base.verbs);
		if (id->base.recv_cq_channel)
			id->base.recv_cq = softhca_ibv_create_cq(id->base.verbs, (int)attr->attr.max_wr, &id->base,
								 id->base.recv_cq_channel, 0);
		id->own_srq_cq = true;
		if (!id->base.recv_cq) {
			int error = errno;

			srq_destroy_cq(id);
			return -error;
		}
	}
	attr->cq = id->base.recv_cq;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

static int srq_complete_xrc(struct user_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)) {
		attr->xrcd = device_xrcd(id->path.device);
		if (!attr->xrcd)
			return -errno;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	}
	return srq_provide_cq(id, attr);
}

static int id_create_srq(struct user_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int error = 0;

	if (id->base.srq)
		return -REFUSE(hca_of_id(id), "rdma_create_srq", EINVAL, RULE_RDMACM_HAS_SRQ, 0);
	if (!id->path.device)
		return -REFUSE(hca_of_id(id), "rdma_create_srq", EINVAL, RULE_RDMACM_UNBOUND, 0);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)) {
		attr->srq_type = id->base.qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->base.pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type == IBV_SRQT_XRC)
		error = srq_complete_xrc(id, attr);
	if (error)
		return error;
	id->base.srq = softhca_ibv_create_srq_ex(id->base.verbs, attr);
	if (id->base.srq) {
		id->base.pd = attr->pd;
		return 0;
	}
	error = -errno;
	if (id->own_srq_cq)
		srq_destroy_cq(id);
	return error;
}

int softhca_rdma_create_srq_ex(struct rdma_cm_id *base, struct ibv_srq_init_attr_ex *attr)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_create_srq");

	return id ? id_end(id, id_create_srq(id, attr)) : -1;
}

int softhca_rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex all = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = pd ? IBV_SRQ_INIT_ATTR_PD : 0,
		.pd = pd,
	};
	int result = softhca_rdma_create_srq_ex(id, &all);

	attr->attr = all.attr;
	return result;
}

void softhca_rdma_destroy_srq(struct rdma_cm_id *base)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = to_user_cm_id(base);

	if (base->srq)
		softhca_ibv_destroy_srq(base->srq);
	base->srq = NULL;
	if (id->own_srq_cq)
		srq_destroy_cq(id);
}
