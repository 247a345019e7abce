/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains by command: ALLOC_PD, ALLOC_TRANSPORT_DOMAIN. */
#include "devx/command.h"

int command_alloc_pd(struct devx_command *command)
{
	struct devx_object *object = command->object;

	if (hca_pd_alloc(command->devx->own, &object->pd))
		return command_refuse_room(command);
	object->number = hca_pd_number(object->pd);
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}

/* Only a number: transport domains are for receive queues of Ethernet, which the device lacks. */
int command_alloc_transport_domain(struct devx_command *command)
{
	command->object->number = ++command->devx->transport_domains & 0xffffff;
	command_put(command, ANY_NUMBER, command->object->number);
	return 0;
}
