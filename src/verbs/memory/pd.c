/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_alloc_pd(3), ibv_dealloc_pd(3), for plain protection domains and parent domains. */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/memory/memcpy_buffer.h"
#include "verbs/object/handles.h"
#include "verbs/memory/parent_domain.h"

static void pd_free(struct user_pd *pd)
{
	memcpy_buffer_free(pd);
	queue_lock_destroy(&pd->lock);
	free(pd);
}

void user_pd_get(struct user_pd *pd)
{
	if (pd)
		__atomic_add_fetch(&pd->references, 1, __ATOMIC_RELAXED);
}

/*
 * The count reaches zero here only after ibv_unimport_pd(3): deallocation requires that its own reference is the last.
 */
void user_pd_put(struct user_pd *pd)
{
	if (pd && !__atomic_sub_fetch(&pd->references, 1, __ATOMIC_ACQ_REL))
		pd_free(pd);
}

struct ibv_pd *softhca_ibv_alloc_pd(struct ibv_context *context)
{
	struct user_context *owner = to_user_context(context);
	struct handle_entry entry = {.kind = HANDLE_PD};
	struct user_pd *pd = calloc(1, sizeof(*pd));
	int error;

	if (!pd)
		return NULL;
	error = -hca_pd_alloc(owner->device, &pd->device);
	if (error) {
		error = REFUSE(hca_of_context(context), "ibv_alloc_pd", error, RULE_PD_NO_ROOM, LIMIT_MAX_PD);
		goto free_pd;
	}
	entry.pd = pd->device;
	error = -handle_add(owner->handles, &entry, &pd->base.handle);
	if (error)
		goto dealloc;
	pd->base.context = context;
	pd->references = 1;
	queue_lock_init(&pd->lock, LOCK_LEVEL_PD, false);
	object_enter(&pd->base, &pd->alive, context);
	return &pd->base;

dealloc:
	hca_pd_dealloc(pd->device);
free_pd:
	free(pd);
	errno = error;
	return NULL;
}

static int pd_dealloc_in_device(struct user_pd *pd)
{
	struct handle_table *handles = to_user_context(pd->base.context)->handles;
	struct hca *hca = hca_of_context(pd->base.context);
	int error;

	memcpy_buffer_free(pd);
	error = -hca_pd_dealloc(pd->device);
	if (error)
		return refuse_ignorable(hca, "ibv_dealloc_pd", error, RULE_PD_IN_USE_ELSEWHERE,
					FIGURES(hca_pd_number(pd->device)));
	handle_remove(handles, HANDLE_PD, pd->base.handle, NULL);
	return 0;
}

/* Returns EBUSY and explains which objects keep @base. */
static int pd_in_use(struct ibv_pd *base)
{
#define KIND(NAME, name) OBJECT_##NAME,
	static const enum object_kind kinds[EXPLAIN_USER_COUNT] = {EXPLAIN_USER_KINDS(KIND)};
#undef KIND
	uint32_t counts[OBJECT_KIND_COUNT], users[EXPLAIN_USER_COUNT];
	uint64_t figures[EXPLAIN_USERS];

	objects_of_pd_count(base, counts);
	for (int i = 0; i < EXPLAIN_USER_COUNT; i++)
		users[i] = counts[kinds[i]];
	explain_users_pack(users, figures);
	return refuse_ignorable(hca_of_context(base->context), "ibv_dealloc_pd", EBUSY, RULE_PD_IN_USE,
				FIGURES(figures[0], figures[1], figures[2]));
}

int softhca_ibv_dealloc_pd(struct ibv_pd *base)
{
	struct user_pd *pd = to_user_pd(base);
	int error = 0;

	if (object_refused("ibv_dealloc_pd", NULL, base))
		return errno;
	if (__atomic_load_n(&pd->references, __ATOMIC_ACQUIRE) != 1)
		return pd_in_use(base);
	if (pd->parent)
		parent_domain_leave(pd);
	else
		error = pd_dealloc_in_device(pd);
	if (error)
		return error;
	object_leave(&pd->alive);
	pd_free(pd);
	return 0;
}
