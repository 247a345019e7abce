/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers for many senders: an RMP is a shared receive queue in umems, a DCT the target of DC. */
#include "devx/command.h"
#include "devx/qp_context.h"

#include "core/limits.h"
#include "format/qp_types.h"

/* wq_type */
enum { RING_LIST = 0, RING_CYCLIC = 1 };

/* The only state of an RMP; the bit of lwm in the bitmask of MODIFY_RMP. */
enum { RMP_READY = 1, CHANGE_LIMIT = 1 };

/*
 * The doorbell record is one word. An entry has a link of 16 bytes, except in a basic cyclic queue, and at least one
 * segment of 16.
 */
enum { RECORD_BYTES = 4, LOG_MAX_SIZE = 15, LOG_SEGMENT = 4 };

int command_create_rmp(struct devx_command *command)
{
	struct devx_object *object = command->object;
	uint64_t type = command_get(command, RMPC_WQ_TYPE);
	struct hca_srq_attr attr = {
		.entry_shift = (uint32_t)command_get(command, RMPC_LOG_STRIDE),
		.cookie = object,
		.context = command->devx->own,
		.in_umem = true,
		.cyclic = type == RING_CYCLIC,
		.basic = type == RING_CYCLIC && command_get(command, RMPC_BASIC_CYCLIC),
	};
	uint8_t *ring, *record;
	struct hca_pd *pd;
	uint64_t bytes;
	int error = command_check_refused(command, LAYOUT_RMPC);

	if (error)
		return error;
	if (type != RING_LIST && type != RING_CYCLIC)
		return command_refuse_field(command, RMPC_WQ_TYPE);
	if (command_get(command, RMPC_LOG_SIZE) > LOG_MAX_SIZE)
		return command_refuse_field(command, RMPC_LOG_SIZE);
	if (attr.entry_shift < (attr.basic ? LOG_SEGMENT : LOG_SEGMENT + 1u) ||
	    1u << attr.entry_shift > LIMIT_MAX_RQ_DESC_SIZE)
		return command_refuse_field(command, RMPC_LOG_STRIDE);
	attr.entry_count = 1u << command_get(command, RMPC_LOG_SIZE);
	bytes = (uint64_t)attr.entry_count << attr.entry_shift;
	error = command_find_pd(command, RMPC_PD, &pd);
	if (!error)
		error = command_find_memory(command, RMPC_WQ_UMEM_ID, command_get(command, RMPC_WQ_UMEM_OFFSET), bytes,
					    &ring);
	if (!error)
		error = command_find_memory(command, RMPC_DBR_UMEM_ID, command_get(command, RMPC_DBR_ADDR),
					    RECORD_BYTES, &record);
	if (error)
		return error;
	attr.buffer = ring;
	attr.dbrec = (uint32_t *)record;
	if (hca_srq_create(pd, &attr, &object->srq))
		return command_refuse_room(command);
	object->number = hca_srq_number(object->srq);
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}

/* Only the limit can change. */
int command_modify_rmp(struct devx_command *command)
{
	struct devx_object *object = command->object;
	uint64_t chosen = command_get(command, RMPC_BITMASK), limit = command_get(command, RMPC_LIMIT);

	if (command_get(command, RMPC_STATE_NOW) != RMP_READY)
		return command_refuse(command, STATUS_BAD_RESOURCE_STATE, RULE_DEVX_RMP_STATE,
				      FIGURES(object->number, command_get(command, RMPC_STATE_NOW), RMP_READY));
	if (command_get(command, RMPC_STATE) != RMP_READY)
		return command_refuse_field(command, RMPC_STATE);
	if (chosen & ~(uint64_t)CHANGE_LIMIT)
		return command_refuse_field(command, RMPC_BITMASK);
	if (!(chosen & CHANGE_LIMIT))
		return 0;
	if (limit > hca_srq_entries(object->srq))
		return command_refuse_field(command, RMPC_LIMIT);
	hca_srq_set_limit(object->srq, (uint32_t)limit);
	return 0;
}

int command_query_rmp(struct devx_command *command)
{
	created_put(command);
	command_put(command, RMPC_STATE, RMP_READY);
	command_put(command, RMPC_LIMIT, hca_srq_limit(command->object->srq));
	command_put(command, RMPC_HARDWARE_COUNTER, 0);
	command_put(command, RMPC_SOFTWARE_COUNTER, 0);
	command_put(command, RMPC_UMEMS_VALID, 3);
	return 0;
}

static int dct_activate(struct devx_command *command, struct hca_qp *qp)
{
	uint8_t port = (uint8_t)command_get(command, DCTC_PORT);
	const struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port ? port : 1,
		.pkey_index = (uint16_t)command_get(command, DCTC_PKEY_INDEX),
		.qp_access_flags = command_get_rights(command, REMOTE_RIGHTS(DCTC)),
	};
	const struct ibv_qp_attr ready = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)command_get(command, DCTC_MTU),
		.min_rnr_timer = (uint8_t)command_get(command, DCTC_MIN_RNR_NAK),
		.ah_attr =
			{
				.is_global = 1,
				.port_num = init.port_num,
				.grh =
					{
						.sgid_index = (uint8_t)command_get(command, DCTC_SRC_ADDR_INDEX),
						.hop_limit = (uint8_t)command_get(command, DCTC_HOP_LIMIT),
						.traffic_class = (uint8_t)command_get(command, DCTC_TCLASS),
						.flow_label = (uint32_t)command_get(command, DCTC_FLOW_LABEL),
					},
			},
	};
	int error = hca_qp_try_modify(qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
				      &command->why);

	if (!error)
		error = hca_qp_try_modify(qp, &ready, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER,
					  &command->why);
	if (!error)
		return 0;
	command->status = STATUS_BAD_PARAMETER;
	return -EREMOTEIO;
}

int command_create_dct(struct devx_command *command)
{
	struct devx_object *object = command->object;
	struct hca_qp_attr attr = {
		.type = QP_TYPE_DCT,
		.user_index = (uint32_t)command_get(command, DCTC_USER_INDEX),
		.dc_access_key = command_get(command, DCTC_DC_ACCESS_KEY),
		.cookie = object,
	};
	int error = command_find_pd(command, DCTC_PD, &attr.pd);

	if (!error)
		error = command_find_cq(command, DCTC_CQN, &attr.recv_cq);
	if (!error)
		error = command_find_srq(command, DCTC_SRQN, &attr.srq);
	if (error)
		return error;
	attr.send_cq = attr.recv_cq;
	if (hca_qp_create(command->devx->own, &attr, &object->qp))
		return command_refuse_room(command);
	error = dct_activate(command, object->qp);
	if (error) {
		hca_qp_destroy(object->qp);
		return error;
	}
	object->number = hca_qp_number(object->qp);
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}
