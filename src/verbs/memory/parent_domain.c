/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_alloc_parent_domain(3), ibv_alloc_td(3), ibv_dealloc_td(3). ibv_dealloc_pd(3) is in pd.c. */
#include "verbs/memory/parent_domain.h"

#include <errno.h>
#include <stdlib.h>

#include "explain/explain.h"
#include "verbs/object/ops.h"

/* Bit 2 is defined by newer headers only; no code depends on it. */
enum { KNOWN_COMP_MASK = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | 1 << 2 };

struct ibv_td *softhca_ibv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct user_td *td;

	if (attr->comp_mask) {
		errno = REFUSE(hca_of_context(context), "ibv_alloc_td", EINVAL, RULE_COMP_MASK, attr->comp_mask, 0);
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->base.context = context;
	object_enter(&td->base, &td->alive, context);
	return &td->base;
}

int softhca_ibv_dealloc_td(struct ibv_td *base)
{
	struct user_td *td = user_container_of(base, struct user_td, base);
	uint32_t users;

	if (object_refused("ibv_dealloc_td", NULL, base))
		return errno;
	users = __atomic_load_n(&td->references, __ATOMIC_ACQUIRE);
	if (users)
		return refuse_ignorable(hca_of_context(base->context), "ibv_dealloc_td", EBUSY, RULE_TD_IN_USE,
					FIGURES(users));
	object_leave(&td->alive);
	free(td);
	return 0;
}

static int parent_domain_check(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	struct hca *hca = hca_of_context(context);

	if (!attr->pd)
		return REFUSE(hca, "ibv_alloc_parent_domain", EINVAL, RULE_PARENT_DOMAIN_PD, 0);
	if (attr->comp_mask & ~(uint32_t)KNOWN_COMP_MASK)
		return REFUSE(hca, "ibv_alloc_parent_domain", EINVAL, RULE_COMP_MASK, attr->comp_mask, KNOWN_COMP_MASK);
	if (object_refused("ibv_alloc_parent_domain", context, attr->pd) ||
	    optional_refused("ibv_alloc_parent_domain", context, attr->td))
		return errno;
	return 0;
}

/* The new domain refers to the device object of its underlying PD, which may be a parent domain itself. */
struct ibv_pd *softhca_ibv_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct user_pd *parent = to_user_pd(attr->pd), *pd;
	int error = parent_domain_check(context, attr);

	if (error) {
		errno = error;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->base.context = context;
	pd->base.handle = parent->base.handle;
	pd->device = parent->device;
	pd->parent = parent;
	pd->references = 1;
	queue_lock_init(&pd->lock, LOCK_LEVEL_PD, false);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	user_pd_get(parent);
	if (attr->td) {
		pd->td = user_container_of(attr->td, struct user_td, base);
		__atomic_add_fetch(&pd->td->references, 1, __ATOMIC_RELAXED);
	}
	object_enter(&pd->base, &pd->alive, context);
	return &pd->base;
}

void parent_domain_leave(struct user_pd *pd)
{
	user_pd_put(pd->parent);
	if (pd->td)
		__atomic_sub_fetch(&pd->td->references, 1, __ATOMIC_RELEASE);
}
