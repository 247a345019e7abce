/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_reserved_qpn_alloc(3): QP numbers for connection managers, of which no QP is made.
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

int softhca_mlx5dv_reserved_qpn_alloc(struct ibv_context *context, uint32_t *qpn)
{
	return -hca_qpn_reserve(hca_of_context(context), qpn);
}

int softhca_mlx5dv_reserved_qpn_dealloc(struct ibv_context *context, uint32_t qpn)
{
	struct hca *hca = hca_of_context(context);

	if (hca_qpn_release(hca, qpn))
		return REFUSE(hca, "mlx5dv_reserved_qpn_dealloc", EINVAL, RULE_DV_QPN_NOT_RESERVED, qpn);
	return 0;
}
