/* SPDX-License-Identifier: BSD-2-Clause */
/* The communication manager of the process, see manager.h. */
#include "rdmacm/manager.h"

#include <errno.h>

#include "cm_host/manager.h"
#include "rdmacm/id.h"

struct cm *rdmacm_manager(void)
{
	static const struct manager_handlers handlers = {.request = handle_request, .event = handle_event};

	return hca_manager(&handlers);
}

int id_make_cm(struct user_cm_id *id)
{
	if (id->cm)
		return 0;
	return rdmacm_manager() ? cm_id_create(rdmacm_manager(), id, &id->cm) : -ENOMEM;
}
