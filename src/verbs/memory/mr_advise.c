/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_advise_mr(3): prefetches pages of on-demand regions. */
#include <errno.h>

#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

static const char call[] = "ibv_advise_mr";

/* Without IBV_ADVISE_MR_FLAG_FLUSH pages may arrive as late as on first access, and a failure is not reported. */
static int sge_prefetch(struct ibv_pd *base, enum ibv_advise_mr_advice advice, uint32_t flags,
			const struct ibv_sge *sge)
{
	struct hca *hca = hca_of_context(base->context);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	bool populate = flags & IBV_ADVISE_MR_FLAG_FLUSH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	int error = -hca_mr_prefetch(to_user_pd(base)->device, sge->lkey, sge->addr, sge->length, write, populate);

	switch (error) {
	case 0:
		return 0;
	case ENOENT:
		return REFUSE(hca, call, error, RULE_ADVISE_NO_KEY, sge->lkey);
	case EINVAL:
		return REFUSE(hca, call, error, RULE_ADVISE_NOT_MR, sge->lkey);
	case EPERM:
		return REFUSE(hca, call, error, RULE_ADVISE_PERMISSION, sge->lkey,
			      hca_pd_number(to_user_pd(base)->device));
	default:
		return REFUSE(hca, call, error, RULE_ADVISE_RANGE, sge->addr, sge->length, sge->lkey);
	}
}

int softhca_ibv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
			  uint32_t count)
{
	struct hca *hca;
	uint32_t index;
	int error;

	if (object_refused(call, NULL, pd))
		return errno;
	hca = hca_of_context(pd->context);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return REFUSE(hca, call, EINVAL, RULE_ADVISE_FLAGS, flags, IBV_ADVISE_MR_FLAG_FLUSH);
	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return REFUSE(hca, call, EOPNOTSUPP, RULE_ADVISE_UNKNOWN, advice);
	if (!count)
		return REFUSE(hca, call, EINVAL, RULE_ADVISE_EMPTY, 0);
	for (index = 0; index < count; index++) {
		error = sge_prefetch(pd, advice, flags, &list[index]);
		if (error)
			return error;
	}
	return 0;
}
