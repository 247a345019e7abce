/* SPDX-License-Identifier: BSD-2-Clause */
/* Closes a context on which two PDs and a CQ are left. */
#include <infiniband/verbs.h>

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context || !ibv_alloc_pd(context) || !ibv_alloc_pd(context) || !ibv_create_cq(context, 4, NULL, NULL, 0))
		return 1;
	return ibv_close_device(context) != 0;
}
