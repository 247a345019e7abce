/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Context of an object from its CREATE command. QUERY returns it with current values of the fields that the device
 * changes.
 */
#include "devx/command.h"

/* Offsets of the context in CREATE and QUERY commands. */
static const struct {
	uint16_t begin, end;
} contexts[DEVX_KIND_COUNT] = {
	[DEVX_CQ] = {16, 80},   [DEVX_QP] = {24, 256},  [DEVX_DCT] = {16, 128},
	[DEVX_RMP] = {32, 272}, [DEVX_MKEY] = {16, 80},
};

size_t created_bytes(enum devx_kind kind)
{
	return contexts[kind].end - contexts[kind].begin;
}

void created_keep(struct devx_object *object, const struct devx_command *command)
{
	memcpy(object->created, command->in + contexts[object->kind].begin, created_bytes(object->kind));
}

void created_put(struct devx_command *command)
{
	const struct devx_object *object = command->object;

	if (object)
		memcpy(command->out + contexts[object->kind].begin, object->created, created_bytes(object->kind));
}

void created_change(struct devx_command *command, struct devx_field field)
{
	struct devx_object *object = command->object;
	uint64_t value = command_get(command, field);

	if (!object)
		return;
	field.dword -= contexts[object->kind].begin / 4;
	devx_field_set(object->created, field, value);
}
