/* SPDX-License-Identifier: BSD-2-Clause */
/* Negotiation of vendor options while connecting. The device has none. */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

/* PCI vendor id of mlx5. */
enum { ECE_VENDOR = 0x15b3 };

int softhca_ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	struct hca *hca;

	if (object_refused("ibv_set_ece", NULL, qp))
		return errno;
	hca = hca_of_context(qp->context);
	/* From a peer without ECE. */
	if (!ece->vendor_id)
		return errno = refuse_on_qp(hca, "ibv_set_ece", qp->qp_num, EOPNOTSUPP, RULE_ECE_VENDOR,
					    FIGURES(0, ECE_VENDOR));
	if (ece->comp_mask)
		return errno = refuse_on_qp(hca, "ibv_set_ece", qp->qp_num, EINVAL, RULE_ECE_COMP_MASK,
					    FIGURES(ece->comp_mask));
	if (ece->vendor_id != ECE_VENDOR)
		return errno = refuse_on_qp(hca, "ibv_set_ece", qp->qp_num, EINVAL, RULE_ECE_VENDOR,
					    FIGURES(ece->vendor_id, ECE_VENDOR));
	ece->options = 0;
	return 0;
}

int softhca_ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (object_refused("ibv_query_ece", NULL, qp))
		return errno;
	*ece = (struct ibv_ece){.vendor_id = ECE_VENDOR};
	return 0;
}
