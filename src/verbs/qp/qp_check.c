/* SPDX-License-Identifier: BSD-2-Clause */
/* Errno values and order of the checks: mlx5-formats 4.2 and 4.11, and the man pages. */
#include "verbs/qp/qp_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/qp_types.h"

enum {
	KNOWN_MASK = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
		     IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH |
		     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	KNOWN_FLAGS = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING |
		      IBV_QP_CREATE_SOURCE_QPN | IBV_QP_CREATE_PCI_WRITE_END_PADDING,
	SUPPORTED_FLAGS = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	RAW_PACKET_FLAGS = IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING,

	DV_KNOWN_MASK = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DC |
			MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
	DV_KNOWN_FLAGS = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
			 MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC | MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
			 MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE | MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE |
			 MLX5DV_QP_CREATE_SIG_PIPELINING,
	/*
	 * received data is never scattered to a CQE, which the first two flags permit; data returned to a requester may
	 * be
	 */
	DV_SUPPORTED_FLAGS = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE |
			     MLX5DV_QP_CREATE_SIG_PIPELINING,
	/* libmlx5: attributes of a DCT that have no effect */
	DCT_MASK = IBV_QP_INIT_ATTR_PD,
	DCT_DV_MASK = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
	DCT_DV_FLAGS = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE | MLX5DV_QP_CREATE_SIG_PIPELINING,
	DV_RAW_PACKET_FLAGS = MLX5DV_QP_CREATE_TUNNEL_OFFLOADS | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
			      MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
};

struct request {
	struct ibv_context *context;
	const struct ibv_qp_init_attr_ex *attr;
	const struct mlx5dv_qp_init_attr *dv;
	const char *call;
};

/* Returns -@error. */
static int creation_refuse(const struct request *request, int error, enum explain_rule rule, const uint64_t *figures,
			   size_t count)
{
	const struct explain_subject subject = {.call = request->call, .error = error};

	explain_make(hca_of_context(request->context), &subject, rule, figures, count);
	return -error;
}

const char *qp_create_call(const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv)
{
	if (dv)
		return "mlx5dv_create_qp";
	return attr->comp_mask == IBV_QP_INIT_ATTR_PD ? "ibv_create_qp" : "ibv_create_qp_ex";
}

static bool request_has(const struct request *request, uint32_t bit)
{
	return request->attr->comp_mask & bit;
}

static bool request_has_dv(const struct request *request, uint64_t bit)
{
	return request->dv && request->dv->comp_mask & bit;
}

static enum mlx5dv_dc_type request_dc_type(const struct request *request)
{
	return request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_DC) ? request->dv->dc_init_attr.dc_type : 0;
}

static int check_masks(const struct request *request)
{
	const struct ibv_qp_init_attr_ex *attr = request->attr;

	if (attr->comp_mask & ~KNOWN_MASK)
		return creation_refuse(request, EINVAL, RULE_QP_COMP_MASK, FIGURES(attr->comp_mask & ~KNOWN_MASK));
	if (request_has(request, IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && attr->qp_type != IBV_QPT_RAW_PACKET)
		return creation_refuse(request, EINVAL, RULE_QP_TSO_HEADER, FIGURES(attr->qp_type));
	if (request_has(request, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (request_has(request, IBV_QP_INIT_ATTR_RX_HASH) || request_dc_type(request) == MLX5DV_DCTYPE_DCT))
		return creation_refuse(request, EINVAL, RULE_QP_NO_SEND_QUEUE, FIGURES(attr->qp_type));
	return 0;
}

/*
 * Returns the bits of @flags that the kernel refuses for @type (mlx5-formats 4.2, "QP attributes that the kernel
 * refuses").
 */
static uint32_t flags_of_other_types(enum ibv_qp_type type, uint32_t flags)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return 0;
	case IBV_QPT_UD:
		return flags & RAW_PACKET_FLAGS;
	default:
		return flags;
	}
}

static int check_flags(const struct request *request)
{
	uint32_t flags = request_has(request, IBV_QP_INIT_ATTR_CREATE_FLAGS) ? request->attr->create_flags : 0;
	uint32_t others = flags_of_other_types(request->attr->qp_type, flags);

	if (flags & IBV_QP_CREATE_SOURCE_QPN && request->attr->qp_type != IBV_QPT_UD)
		return creation_refuse(request, EINVAL, RULE_QP_SOURCE_QPN, FIGURES(request->attr->qp_type));
	if (flags & ~KNOWN_FLAGS)
		return creation_refuse(request, EINVAL, RULE_QP_CREATE_FLAGS, FIGURES(flags & ~KNOWN_FLAGS));
	if (others)
		return creation_refuse(request, EINVAL, RULE_QP_CREATE_FLAGS, FIGURES(others));
	if (flags & ~SUPPORTED_FLAGS)
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_CREATE_FLAGS, FIGURES(flags & ~SUPPORTED_FLAGS));
	return 0;
}

static int check_dv_flags(const struct request *request, uint32_t flags)
{
	if (flags & ~DV_KNOWN_FLAGS)
		return creation_refuse(request, EINVAL, RULE_QP_DV_CREATE_FLAGS, FIGURES(flags & ~DV_KNOWN_FLAGS));
	if (flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE && flags & MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE)
		return creation_refuse(request, EINVAL, RULE_QP_DV_SCATTER_FLAGS, FIGURES(flags));
	if (flags & DV_RAW_PACKET_FLAGS && request->attr->qp_type != IBV_QPT_RAW_PACKET)
		return creation_refuse(request, EINVAL, RULE_QP_DV_CREATE_FLAGS, FIGURES(flags & DV_RAW_PACKET_FLAGS));
	if (flags & ~DV_SUPPORTED_FLAGS)
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_DV_CREATE_FLAGS,
				       FIGURES(flags & ~DV_SUPPORTED_FLAGS));
	return 0;
}

static int check_dv(const struct request *request)
{
	uint64_t unknown = request->dv->comp_mask & ~(uint64_t)DV_KNOWN_MASK;

	if (unknown)
		return creation_refuse(request, EINVAL, RULE_QP_DV_COMP_MASK, FIGURES(unknown));
	if (request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_DC) && request->attr->qp_type != IBV_QPT_DRIVER)
		return creation_refuse(request, EINVAL, RULE_QP_DC_TYPE,
				       FIGURES(request->attr->qp_type, request->dv->dc_init_attr.dc_type));
	if (request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS))
		return check_dv_flags(request, request->dv->create_flags);
	return 0;
}

static int check_type(const struct request *request, const struct qp_type_info **type)
{
	const struct ibv_qp_init_attr_ex *attr = request->attr;

	*type = qp_type_info(attr->qp_type, request_dc_type(request));
	if (!*type) {
		if (attr->qp_type == IBV_QPT_DRIVER)
			return creation_refuse(request, EINVAL, RULE_QP_DC_TYPE,
					       FIGURES(attr->qp_type, request_dc_type(request)));
		return creation_refuse(request, EINVAL, RULE_QP_TYPE_UNKNOWN, FIGURES((int64_t)attr->qp_type));
	}
	if (request_has(request, IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE))
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_RSS, FIGURES(0));
	if (!(*type)->implemented)
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_TYPE, FIGURES(attr->qp_type));
	return 0;
}

static int check_dct(const struct request *request)
{
	const struct mlx5dv_qp_init_attr *dv = request->dv;
	uint32_t flags = request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) ? dv->create_flags : 0;

	if (request->attr->comp_mask & ~(uint32_t)DCT_MASK || dv->comp_mask & ~(uint64_t)DCT_DV_MASK)
		return creation_refuse(request, EINVAL, RULE_QP_DCT_ATTR,
				       FIGURES(request->attr->comp_mask, dv->comp_mask, DCT_MASK, DCT_DV_MASK));
	if (flags & ~(uint32_t)DCT_DV_FLAGS)
		return creation_refuse(request, EINVAL, RULE_QP_DV_CREATE_FLAGS,
				       FIGURES(flags & ~(uint32_t)DCT_DV_FLAGS));
	if (!request->attr->srq)
		return creation_refuse(request, EINVAL, RULE_QP_DCT_SRQ, FIGURES(QP_TYPE_DCT));
	return 0;
}

static int check_dci(const struct request *request)
{
	const struct ibv_qp_cap *cap = &request->attr->cap;
	const struct mlx5dv_dci_streams *streams = &request->dv->dc_init_attr.dci_streams;

	if (request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS) &&
	    (streams->log_num_concurent > LIMIT_LOG_DCI_STREAMS || streams->log_num_errored > LIMIT_LOG_DCI_ERRORED))
		return creation_refuse(request, EINVAL, RULE_QP_DCI_STREAMS,
				       FIGURES(streams->log_num_concurent, streams->log_num_errored,
					       LIMIT_LOG_DCI_STREAMS, LIMIT_LOG_DCI_ERRORED));
	if (cap->max_recv_wr || cap->max_recv_sge)
		return creation_refuse(request, EINVAL, RULE_QP_DCI_RECEIVES,
				       FIGURES(cap->max_recv_wr, cap->max_recv_sge));
	return 0;
}

static int check_dc(const struct request *request)
{
	switch (request_dc_type(request)) {
	case MLX5DV_DCTYPE_DCI:
		return check_dci(request);
	case MLX5DV_DCTYPE_DCT:
		return check_dct(request);
	default:
		return 0;
	}
}

/* Refuses an SRQ that is not of @kind, or of another context. */
static int check_srq(const struct request *request, enum ibv_srq_type kind)
{
	struct ibv_srq *srq = request->attr->srq;

	if (object_refused(request->call, request->context, srq))
		return -errno;
	if (srq->context != request->context || ((const struct user_srq *)srq)->type != kind)
		return creation_refuse(request, EINVAL, RULE_QP_SRQ_KIND, FIGURES(request->attr->qp_type));
	return 0;
}

/*
 * An XRC_RECV QP belongs to its XRC domain and has no queue: PD, CQs and capabilities are ignored, and so is an XRC
 * SRQ; the kernel refuses other SRQs (mlx5-formats 4.2).
 */
static int check_xrc_recv(const struct request *request)
{
	const struct ibv_qp_init_attr_ex *attr = request->attr;
	int err;

	if (request_has(request, IBV_QP_INIT_ATTR_XRCD) &&
	    optional_refused(request->call, request->context, attr->xrcd))
		return -errno;
	if (!request_has(request, IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd || attr->xrcd->context != request->context)
		return creation_refuse(request, EINVAL, RULE_QP_XRCD, FIGURES(attr->comp_mask));
	if (attr->srq) {
		err = check_srq(request, IBV_SRQT_XRC);
		if (err)
			return err;
	}
	/* libmlx5 allows no operations without a send queue. */
	if (request_has(request, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_SEND_OPS,
				       FIGURES(attr->send_ops_flags, attr->qp_type));
	if (request_has_dv(request, MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS))
		return creation_refuse(request, EOPNOTSUPP, RULE_QP_SEND_OPS,
				       FIGURES(request->dv->send_ops_flags, attr->qp_type));
	return 0;
}

static int check_objects(const struct request *request, const struct qp_type_info *type)
{
	const struct ibv_qp_init_attr_ex *attr = request->attr;
	const struct ibv_context *context = request->context;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return check_xrc_recv(request);
	if (request_has(request, IBV_QP_INIT_ATTR_PD) && optional_refused(request->call, context, attr->pd))
		return -errno;
	if (optional_refused(request->call, context, attr->send_cq))
		return -errno;
	if (!type->send_only && optional_refused(request->call, context, attr->recv_cq))
		return -errno;
	if (!request_has(request, IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return creation_refuse(request, EINVAL, RULE_QP_PD, FIGURES(attr->qp_type));
	if (!attr->send_cq || attr->send_cq->context != context)
		return creation_refuse(request, EINVAL, RULE_QP_CQ, FIGURES(attr->qp_type));
	if (type->send_only)
		return attr->srq ? creation_refuse(request, EINVAL, RULE_QP_SRQ, FIGURES(attr->qp_type)) : 0;
	if (!attr->recv_cq || attr->recv_cq->context != context)
		return creation_refuse(request, EINVAL, RULE_QP_CQ, FIGURES(attr->qp_type));
	if (!attr->srq)
		return 0;
	if (!type->srq)
		return creation_refuse(request, EINVAL, RULE_QP_SRQ, FIGURES(attr->qp_type));
	return check_srq(request, IBV_SRQT_BASIC);
}

int qp_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr, const struct mlx5dv_qp_init_attr *dv,
	     const struct qp_type_info **type)
{
	const struct request request = {context, attr, dv, qp_create_call(attr, dv)};
	int err = check_masks(&request);

	if (!err)
		err = check_flags(&request);
	if (!err && dv)
		err = check_dv(&request);
	if (!err)
		err = check_type(&request, type);
	if (!err)
		err = check_dc(&request);
	if (!err)
		err = check_objects(&request, *type);
	return err;
}
