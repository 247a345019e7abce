/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for all commands: refusals, and lookup of the objects that fields name. See command.h. */
#include "devx/command.h"

static const struct {
	enum devx_layout layout;
	struct devx_field field;
} refused_fields[] = {
#define REFUSED(layout, name, dword, high, low) {LAYOUT_##layout, {dword, high, low}},
#include "devx/fields.def"
};

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

int command_refuse_field(struct devx_command *command, struct devx_field field)
{
	return command_refuse(command, STATUS_BAD_PARAMETER, RULE_DEVX_FIELD,
			      FIGURES(command->opcode, 4u * field.dword, field.high, field.low,
				      command_get(command, field)));
}

int command_check_refused(struct devx_command *command, enum devx_layout layout)
{
	for (size_t i = 0; i < sizeof(refused_fields) / sizeof(refused_fields[0]); i++)
		if (refused_fields[i].layout == layout && command_get(command, refused_fields[i].field))
			return command_refuse_field(command, refused_fields[i].field);
	return 0;
}

int command_refuse_number(struct devx_command *command, const char *name, uint64_t number)
{
	return command_refuse(command, STATUS_NO_SUCH_RESOURCE, RULE_DEVX_NUMBER,
			      FIGURES(command->opcode, devx_name_figure(name), number));
}

int command_refuse_length(struct devx_command *command, size_t bytes)
{
	return command_refuse(command, STATUS_BAD_INPUT_LENGTH, RULE_DEVX_LENGTH,
			      FIGURES(command->opcode, command->in_bytes, command->out_bytes, bytes, COMMAND_HEADER));
}

int command_refuse_room(struct devx_command *command)
{
	return command_refuse(command, STATUS_NO_RESOURCES, RULE_DEVX_NO_ROOM, FIGURES(command->opcode));
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

int command_find_pd(struct devx_command *command, struct devx_field field, struct hca_pd **pd)
{
	uint32_t number = (uint32_t)command_get(command, field);

	*pd = hca_pd_find(command->devx->verbs, number);
	if (!*pd)
		*pd = hca_pd_find(command->devx->own, number);
	return *pd ? 0 : command_refuse_number(command, "PD", number);
}

int command_find_cq(struct devx_command *command, struct devx_field field, struct hca_cq **cq)
{
	uint32_t number = (uint32_t)command_get(command, field);

	*cq = hca_cq_find(command->devx->verbs, number);
	if (!*cq)
		*cq = hca_cq_find(command->devx->own, number);
	return *cq ? 0 : command_refuse_number(command, "CQ", number);
}

int command_find_srq(struct devx_command *command, struct devx_field field, struct hca_srq **srq)
{
	uint32_t number = (uint32_t)command_get(command, field);

	*srq = hca_srq_find(command->devx->verbs, number);
	if (!*srq)
		*srq = hca_srq_find(command->devx->own, number);
	return *srq ? 0 : command_refuse_number(command, "SRQ", number);
}

int command_check_uar(struct devx_command *command, struct devx_field field)
{
	uint32_t number = (uint32_t)command_get(command, field);

	return devx_number_find(&command->devx->uars, number) ? 0 : command_refuse_number(command, "UAR", number);
}

int command_find_memory(struct devx_command *command, struct devx_field field, uint64_t offset, uint64_t size,
			uint8_t **memory)
{
	uint32_t number = (uint32_t)command_get(command, field);
	struct devx_umem *umem = devx_number_find(&command->devx->umems, number);
	struct devx_umem **kept = command->object->umem;

	if (!umem)
		return command_refuse_number(command, "umem", number);
	if (offset > umem->size || size > umem->size - offset)
		return command_refuse(command, STATUS_BAD_PARAMETER, RULE_DEVX_UMEM_RANGE,
				      FIGURES(command->opcode, number, offset, size, umem->size));
	*memory = umem->address + offset;
	kept[kept[0] != NULL] = umem;
	umem->references++;
	return 0;
}

/* ---- rights --------------------------------------------------------------------------------------------------------- */

unsigned int command_get_rights(const struct devx_command *command, const struct devx_right *rights)
{
	unsigned int value = 0;

	for (; rights->bit; rights++)
		if (command_get(command, rights->field))
			value |= rights->bit;
	return value;
}

void command_put_rights(struct devx_command *command, const struct devx_right *rights, unsigned int value)
{
	for (; rights->bit; rights++)
		command_put(command, rights->field, (value & rights->bit) != 0);
}
