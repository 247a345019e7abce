/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring and doorbell record are in umems. */
#include "core/limits.h"
#include "devx/command.h"

/* status and st, as the adapter encodes them. */
enum { CQ_OK = 0x0, CQ_OVERFLOW = 0x9, ARMED_SOLICITED = 0x6, ARMED = 0x9, FIRED = 0xa };

/* page_offset is in units of 64 bytes. */
enum { DBREC_BYTES = 8, OFFSET_UNIT = 64, LOG_MAX_SIZE = 22 };

static int cq_find_memory(struct devx_command *command, struct hca_cq_attr *attr)
{
	uint64_t offset = command_get(command, CQC_UMEM_OFFSET), bytes = (uint64_t)attr->cqe_count * attr->cqe_size;
	uint8_t *ring, *record;
	int error;

	if (__builtin_add_overflow(offset, OFFSET_UNIT * command_get(command, CQC_PAGE_OFFSET), &offset))
		return command_refuse_field(command, CQC_UMEM_OFFSET);
	error = command_find_memory(command, CQC_UMEM_ID, offset, bytes, &ring);
	if (!error)
		error = command_find_memory(command, CQC_DBR_UMEM_ID, command_get(command, CQC_DBR_ADDR), DBREC_BYTES,
					    &record);
	if (error)
		return error;
	attr->buffer = ring;
	attr->dbrec = (uint32_t *)record;
	return 0;
}

int command_create_cq(struct devx_command *command)
{
	struct devx_object *object = command->object;
	struct hca_cq_attr attr = {
		.cqe_size = 64u << command_get(command, CQC_CQE_SIZE),
		.ignore_overrun = command_get(command, CQC_IGNORE_OVERRUN),
		.collapsed = command_get(command, CQC_COLLAPSED),
		.in_umem = true,
		.cookie = object,
		.channel = &command->devx->events,
	};
	uint64_t event_queue = command_get(command, CQC_EQN);
	int error = command_check_refused(command, LAYOUT_CQC);

	if (error)
		return error;
	if (attr.cqe_size > 128)
		return command_refuse_field(command, CQC_CQE_SIZE);
	if (command_get(command, CQC_LOG_SIZE) > LOG_MAX_SIZE)
		return command_refuse_field(command, CQC_LOG_SIZE);
	attr.cqe_count = 1u << command_get(command, CQC_LOG_SIZE);
	if (event_queue < 1 || event_queue > LIMIT_COMP_VECTORS)
		return command_refuse_number(command, "EQ", event_queue);
	error = command_check_uar(command, CQC_UAR_PAGE);
	if (!error)
		error = cq_find_memory(command, &attr);
	if (error)
		return error;
	if (hca_cq_create(command->devx->own, &attr, &object->cq))
		return command_refuse_room(command);
	object->number = hca_cq_number(object->cq);
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}

static uint32_t cq_arm_state(const struct hca_cq_state *state)
{
	if (state->armed)
		return ARMED;
	return state->armed_solicited ? ARMED_SOLICITED : FIRED;
}

int command_query_cq(struct devx_command *command)
{
	struct hca_cq_state state;

	created_put(command);
	hca_cq_query(command->object->cq, &state);
	command_put(command, CQC_STATUS, state.overrun ? CQ_OVERFLOW : CQ_OK);
	command_put(command, CQC_ARM_STATE, cq_arm_state(&state));
	command_put(command, CQC_DBR_UMEM_VALID, 1);
	command_put(command, CQC_PRODUCER_COUNTER, state.producer);
	command_put(command, CQC_CONSUMER_COUNTER, state.consumer);
	return 0;
}
