/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_query_port(3): attributes of a port as the steering of a switching adapter knows them. This device
 * has no embedded switch, so `flags` says of each attribute that it is not valid.
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

int softhca__mlx5dv_query_port(struct ibv_context *context, uint32_t port_num, struct mlx5dv_port *info,
			       size_t info_len)
{
	if (port_num < 1 || port_num > LIMIT_PORTS)
		return REFUSE(hca_of_context(context), "mlx5dv_query_port", EINVAL, RULE_DV_PORT_NUMBER, port_num,
			      LIMIT_PORTS);
	/* info_len is the size of the structure in the program's header, which may be older or newer. */
	memset(info, 0, info_len);
	return 0;
}
