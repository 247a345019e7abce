/* SPDX-License-Identifier: BSD-2-Clause */
/* A context and a PD, see objects.h. */
#include "support/objects.h"

struct ibv_context *context;
struct ibv_pd *pd;

int objects_open(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	pd = context ? ibv_alloc_pd(context) : NULL;
	return pd ? 0 : -1;
}

int objects_close(void **state)
{
	(void)state;
	return ibv_dealloc_pd(pd) || ibv_close_device(context);
}
