/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_modify_cq(3): event moderation. */
#include <errno.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

int softhca_ibv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct hca *hca;

	if (object_refused("ibv_modify_cq", NULL, cq))
		return errno;
	hca = hca_of_context(cq->context);
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return REFUSE(hca, "ibv_modify_cq", EINVAL, RULE_CQ_MODIFY_MASK, attr->attr_mask);
	if (attr->moderate.cq_period > LIMIT_MAX_CQ_PERIOD)
		return REFUSE(hca, "ibv_modify_cq", EINVAL, RULE_CQ_PERIOD, attr->moderate.cq_period,
			      LIMIT_MAX_CQ_PERIOD);
	return -hca_cq_moderate(to_user_cq(cq)->device, attr->moderate.cq_count, attr->moderate.cq_period);
}
