/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals by libibverbs are IBV_REREG_MR_ERR_INPUT; refusals by the kernel are IBV_REREG_MR_ERR_CMD with errno set.
 * The region stays valid and unchanged after either.
 */
#include <errno.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/handles.h"
#include "verbs/object/lint.h"
#include "verbs/memory/mr.h"

static const char call[] = "ibv_rereg_mr";

static int rereg_refuse_input(int error)
{
	errno = error;
	return IBV_REREG_MR_ERR_INPUT;
}

static int rereg_refuse_command(int error)
{
	errno = error;
	return IBV_REREG_MR_ERR_CMD;
}

/* ibv_alloc_null_mr(3): re-registration "with this MR is invalid". Device memory cannot move. */
static bool rereg_allowed(const struct user_mr *mr)
{
	return mr->kind != MR_NULL && mr->kind != MR_DEVICE_MEMORY;
}

/* Returns an errno value. */
static int rereg_check_input(struct hca *hca, const struct user_mr *mr, int flags, const void *addr, size_t length,
			     int access)
{
	/* Its address is unknown here, and the process that registered it would not learn of the change. */
	if (mr->imported)
		return REFUSE(hca, call, EINVAL, RULE_REREG_IMPORTED, mr->base.lkey);
	if (!rereg_allowed(mr))
		return REFUSE(hca, call, EINVAL, RULE_REREG_KIND, mr->base.lkey);
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return REFUSE(hca, call, EINVAL, RULE_REREG_FLAGS, flags, IBV_REREG_MR_FLAGS_SUPPORTED);
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))
		return REFUSE(hca, call, EINVAL, RULE_REREG_TRANSLATION, (uintptr_t)addr, length);
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return REFUSE(hca, call, EINVAL, RULE_REREG_ACCESS, access);
	return 0;
}

/* Fills @attr: new values where @flags request them, otherwise the current ones. Returns an errno value. */
static int rereg_describe(struct hca *hca, const struct user_mr *mr, int flags, void *addr, size_t length, int access,
			  struct hca_mr_attr *attr)
{
	unsigned int rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access : mr->access;
	int error = mr_check_access(hca, call, rights);

	if (error)
		return error;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		return mr_describe(hca, call, addr, length, (uintptr_t)addr, rights, attr);
	*attr = (struct hca_mr_attr){.kind = mr->kind,
				     .addr = mr->base.addr,
				     .start = mr->start,
				     .length = mr->base.length,
				     .access = rights};
	return 0;
}

/* Uses @pd only if @flags change it, because programs may otherwise pass anything. */
static void update_object(struct user_mr *mr, int flags, struct ibv_pd *pd, const struct hca_mr_attr *attr)
{
	const struct handle_entry entry = {.kind = HANDLE_MR,
					   .key = mr->key,
					   .length = attr->length,
					   .start = attr->start,
					   .access = attr->access,
					   .mr_kind = attr->kind};

	if (flags & IBV_REREG_MR_CHANGE_PD) {
		user_pd_get(to_user_pd(pd));
		user_pd_put(to_user_pd(mr->base.pd));
		mr->base.pd = pd;
	}
	mr->base.addr = attr->addr;
	mr->base.length = attr->length;
	mr->kind = attr->kind;
	mr->start = attr->start;
	mr->access = attr->access;
	handle_update(to_user_context(mr->base.context)->handles, mr->base.handle, &entry);
}

int softhca_ibv_rereg_mr(struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct user_mr *mr = to_user_mr(base);
	struct hca_mr_attr attr;
	struct hca *hca;
	int error;

	if (object_refused(call, NULL, base))
		return IBV_REREG_MR_ERR_INPUT;
	hca = hca_of_context(base->context);
	error = rereg_check_input(hca, mr, flags, addr, length, access);
	if (error)
		return rereg_refuse_input(error);
	if (!flags)
		return rereg_refuse_command(REFUSE(hca, call, EINVAL, RULE_REREG_NOTHING, 0));
	error = rereg_describe(hca, mr, flags, addr, length, access, &attr);
	if (!error && flags & IBV_REREG_MR_CHANGE_PD && object_refused(call, base->context, pd))
		error = errno;
	if (error)
		return rereg_refuse_command(error);
	error = -hca_mr_reregister(mr->key, flags, flags & IBV_REREG_MR_CHANGE_PD ? to_user_pd(pd)->device : NULL,
				   &attr);
	if (error)
		return rereg_refuse_command(mr_explain_failure(hca, call, error, &attr));
	update_object(mr, flags, pd, &attr);
	LINT(mr_changed, mr);
	return 0;
}
