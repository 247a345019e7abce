/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings and doorbell records are in umems: the receive ring first, then the send ring (mlx5-formats 1.1). */
#include "core/limits.h"
#include "devx/command.h"
#include "devx/qp_context.h"

/* page_offset is in units of 64 bytes. */
enum { DBREC_BYTES = 8, OFFSET_UNIT = 64, WQE_BLOCK = 64 };

static int qp_read_type(struct devx_command *command, struct hca_qp_attr *attr)
{
	switch (command_get(command, QPC_ST)) {
	case SERVICE_RC:
		attr->type = IBV_QPT_RC;
		return 0;
	case SERVICE_UC:
		attr->type = IBV_QPT_UC;
		return 0;
	case SERVICE_UD:
		attr->type = IBV_QPT_UD;
		return 0;
	case SERVICE_DCI:
		attr->type = QP_TYPE_DCI;
		return 0;
	default:
		return command_refuse_field(command, QPC_ST);
	}
}

/* A DCI never receives. */
static int qp_read_receive_queue(struct devx_command *command, struct hca_qp_attr *attr)
{
	if (attr->type == QP_TYPE_DCI)
		return 0;
	switch (command_get(command, QPC_RQ_TYPE)) {
	case RECEIVE_QUEUE:
		attr->rq_count = 1u << command_get(command, QPC_LOG_RQ_SIZE);
		attr->rq_shift = 4 + (uint32_t)command_get(command, QPC_LOG_RQ_STRIDE);
		if (1u << attr->rq_shift > LIMIT_MAX_RQ_DESC_SIZE)
			return command_refuse_field(command, QPC_LOG_RQ_STRIDE);
		return 0;
	case RECEIVE_SHARED:
		return command_find_srq(command, QPC_SRQN, &attr->srq);
	case RECEIVE_NONE:
		return 0;
	default:
		return command_refuse_field(command, QPC_RQ_TYPE);
	}
}

/* The other half's CQ replaces an omitted CQ of an unused half. */
static int qp_find_cqs(struct devx_command *command, struct hca_qp_attr *attr)
{
	bool sends = attr->sq_wqebb_count || command_get(command, QPC_CQN_SND);
	bool receives = attr->rq_count || attr->srq || command_get(command, QPC_CQN_RCV);
	int error = sends || !receives ? command_find_cq(command, QPC_CQN_SND, &attr->send_cq) : 0;

	if (!error && receives)
		error = command_find_cq(command, QPC_CQN_RCV, &attr->recv_cq);
	if (!attr->send_cq)
		attr->send_cq = attr->recv_cq;
	if (!attr->recv_cq)
		attr->recv_cq = attr->send_cq;
	return error;
}

static int qp_find_memory(struct devx_command *command, struct hca_qp_attr *attr)
{
	uint64_t offset = command_get(command, QPC_WQ_UMEM_OFFSET);
	uint64_t receive_bytes = (uint64_t)attr->rq_count << attr->rq_shift;
	uint64_t bytes = receive_bytes + (uint64_t)attr->sq_wqebb_count * WQE_BLOCK;
	uint8_t *ring = NULL, *record = NULL;
	int error;

	if (__builtin_add_overflow(offset, OFFSET_UNIT * command_get(command, QPC_PAGE_OFFSET), &offset))
		return command_refuse_field(command, QPC_WQ_UMEM_OFFSET);
	error = bytes ? command_find_memory(command, QPC_WQ_UMEM_ID, offset, bytes, &ring) : 0;
	if (!error)
		error = command_find_memory(command, QPC_DBR_UMEM_ID, command_get(command, QPC_DBR_ADDR), DBREC_BYTES,
					    &record);
	if (error)
		return error;
	attr->rq_buffer = attr->rq_count ? ring : NULL;
	attr->sq_buffer = attr->sq_wqebb_count ? ring + receive_bytes : NULL;
	attr->dbrec = (uint32_t *)record;
	return 0;
}

/* Returns true if the command permits data of READs and atomics in CQEs as large as those of @cq. */
static bool qp_may_scatter(const struct devx_command *command, const struct hca_cq *cq)
{
	return command_get(command, QPC_CS_REQ) == (hca_cq_entry_size(cq) == 128 ? SCATTER_TO_128 : SCATTER_TO_64);
}

int command_create_qp(struct devx_command *command)
{
	struct devx_object *object = command->object;
	struct hca_qp_attr attr = {
		.user_index = (uint32_t)command_get(command, QPC_USER_INDEX),
		.stop_at_signature_error = command_get(command, QPC_DRAIN_SIGERR),
		.in_umem = true,
		.cookie = object,
	};
	int error = command_check_refused(command, LAYOUT_QPC);

	if (!command_get(command, QPC_NO_SQ))
		attr.sq_wqebb_count = 1u << command_get(command, QPC_LOG_SQ_SIZE);
	if (!error)
		error = qp_read_type(command, &attr);
	if (!error)
		error = command_find_pd(command, QPC_PD, &attr.pd);
	if (!error)
		error = command_check_uar(command, QPC_UAR_PAGE);
	if (!error)
		error = qp_read_receive_queue(command, &attr);
	if (!error)
		error = qp_find_cqs(command, &attr);
	if (!error)
		error = qp_find_memory(command, &attr);
	if (error)
		return error;
	attr.scatter_to_cqe = qp_may_scatter(command, attr.send_cq);
	attr.cap = (struct ibv_qp_cap){
		.max_send_wr = attr.sq_wqebb_count,
		.max_recv_wr = attr.rq_count,
		.max_send_sge = attr.sq_wqebb_count ? LIMIT_MAX_SGE : 0,
		.max_recv_sge = attr.rq_count ? 1u << (attr.rq_shift - 4) : 0,
	};
	if (hca_qp_create(command->devx->own, &attr, &object->qp))
		return command_refuse_room(command);
	object->number = hca_qp_number(object->qp);
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}
