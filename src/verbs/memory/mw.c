/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding: verbs/post/bind_mw.c. */
#include <errno.h>
#include <stdlib.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

struct ibv_mw *softhca_ibv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct user_mw *mw;
	struct hca *hca;
	int error;

	if (object_refused("ibv_alloc_mw", NULL, pd))
		return NULL;
	hca = hca_of_context(pd->context);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = REFUSE(hca, "ibv_alloc_mw", EINVAL, RULE_MW_TYPE, type);
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	error = -hca_mw_alloc(to_user_pd(pd)->device, type, &mw->key);
	if (error) {
		free(mw);
		errno = REFUSE(hca, "ibv_alloc_mw", error, RULE_MR_NO_ROOM, LIMIT_MAX_MW);
		return NULL;
	}
	mw->base.context = pd->context;
	mw->base.pd = pd;
	mw->base.type = type;
	mw->base.rkey = mkey_number(mw->key);
	mw->base.handle = mw->base.rkey >> 8;
	user_pd_get(to_user_pd(pd));
	object_enter(&mw->base, &mw->alive, pd->context);
	return &mw->base;
}

/* If the window is bound, its grant ends (mlx5-formats 4.12). */
int softhca_ibv_dealloc_mw(struct ibv_mw *base)
{
	struct user_mw *mw = to_user_mw(base);
	int error;

	if (object_refused("ibv_dealloc_mw", NULL, base))
		return errno;
	error = -hca_mw_dealloc(mw->key);
	if (error)
		return error;
	object_leave(&mw->alive);
	user_pd_put(to_user_pd(base->pd));
	free(mw);
	return 0;
}
