/* SPDX-License-Identifier: BSD-2-Clause */
/* See manager.h. */
#include "rdmacm/manager.h"

#include "hca/manager.h"

struct cm *manager(void)
{
	static const struct manager_handlers handlers = {.request = handle_request, .event = handle_event};

	return hca_manager(&handlers);
}
