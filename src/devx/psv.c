/* SPDX-License-Identifier: BSD-2-Clause */
/* One PSV per command: the kernel refuses other counts. */
#include "devx/command.h"

int command_create_psv(struct devx_command *command)
{
	struct devx_object *object = command->object;
	struct hca_pd *pd;
	int error;

	error = command_find_pd(command, PSV_PD, &pd);
	if (error)
		return error;
	if (hca_psv_create(pd, &object->number))
		return command_refuse_room(command);
	command_put(command, PSV_FIRST, object->number);
	return 0;
}
