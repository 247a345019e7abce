/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_reg_mr(3), ibv_reg_mr_iova(3), ibv_reg_mr_iova2(3), ibv_alloc_null_mr(3), ibv_reg_dm_mr(3),
 * ibv_dereg_mr(3).
 */
#include "verbs/memory/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/memory/dm.h"
#include "verbs/object/handles.h"
#include "verbs/object/lint.h"
#include "verbs/object/ops.h"

int mr_explain_failure(struct hca *hca, const char *call, int error, const struct hca_mr_attr *attr)
{
	if (error == EFAULT)
		return REFUSE(hca, call, error, RULE_MR_NOT_MAPPED, (uintptr_t)attr->addr, attr->length, attr->access);
	return REFUSE(hca, call, error, RULE_MR_NO_ROOM, LIMIT_MAX_MR);
}

/*
 * A null region holds no reference to its PD: the kernel does not know this object of libmlx5, and its PD may be
 * deallocated first.
 */
static bool keeps_pd(const struct user_mr *mr)
{
	return mr->kind != MR_NULL;
}

/* @key exists in the device. */
static struct ibv_mr *mr_make_object(struct ibv_pd *pd, struct mkey *key, void *addr, const struct hca_mr_attr *attr,
				     uint32_t dm_handle)
{
	const struct handle_entry entry = {.kind = HANDLE_MR,
					   .key = key,
					   .length = attr->length,
					   .start = attr->start,
					   .access = attr->access,
					   .mr_kind = attr->kind,
					   .dm_handle = dm_handle};
	struct user_mr *mr = calloc(1, sizeof(*mr));

	if (!mr || handle_add(to_user_context(pd->context)->handles, &entry, &mr->base.handle)) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	mr->base.context = pd->context;
	mr->base.pd = pd;
	mr->base.addr = addr;
	mr->base.length = attr->length;
	mr->base.lkey = mkey_number(key);
	/* ibv_alloc_null_mr(3): "only the lkey is valid, the MR is not exposed as an rkey" */
	mr->base.rkey = attr->kind == MR_NULL ? 0 : mr->base.lkey;
	mr->key = key;
	mr->kind = attr->kind;
	mr->start = attr->start;
	mr->access = attr->access;
	mr->dm_handle = dm_handle;
	if (keeps_pd(mr))
		user_pd_get(to_user_pd(pd));
	LINT(mr_registered, mr);
	object_enter(&mr->base, &mr->alive, pd->context);
	return &mr->base;
}

struct ibv_mr *mr_new(struct ibv_pd *pd, const char *call, void *addr, const struct hca_mr_attr *attr,
		      uint32_t dm_handle)
{
	struct ibv_mr *mr;
	struct mkey *key;
	int error = -hca_mr_register(to_user_pd(pd)->device, attr, &key);

	if (error) {
		errno = mr_explain_failure(hca_of_context(pd->context), call, error, attr);
		return NULL;
	}
	mr = mr_make_object(pd, key, addr, attr, dm_handle);
	if (!mr)
		hca_mr_deregister(key);
	return mr;
}

struct ibv_mr *mr_register(struct ibv_pd *pd, const char *call, void *addr, size_t length, uint64_t iova,
			   unsigned int access)
{
	struct hca_mr_attr attr;
	struct hca *hca;
	int error;

	hca = hca_of_context(pd->context);
	error = mr_check_access(hca, call, access);
	if (!error)
		error = mr_describe(hca, call, addr, length, iova, access, &attr);
	if (error) {
		errno = error;
		return NULL;
	}
	return mr_new(pd, call, addr, &attr, 0);
}

static struct ibv_mr *mr_check_and_register(struct ibv_pd *pd, const char *call, void *addr, size_t length,
					    uint64_t iova, unsigned int access)
{
	return object_refused(call, NULL, pd) ? NULL : mr_register(pd, call, addr, length, iova, access);
}

struct ibv_mr *softhca_ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return mr_check_and_register(pd, "ibv_reg_mr", addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *softhca_ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return mr_check_and_register(pd, "ibv_reg_mr_iova", addr, length, iova, (unsigned int)access);
}

/* Called by verbs.h for ibv_reg_mr and ibv_reg_mr_iova if optional access flags are possible. */
struct ibv_mr *softhca_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
					unsigned int access)
{
	return mr_check_and_register(pd, iova == (uintptr_t)addr ? "ibv_reg_mr" : "ibv_reg_mr_iova", addr, length, iova,
				     access);
}

/* Allows local write, so that writes succeed; their data is discarded. */
struct ibv_mr *softhca_ibv_alloc_null_mr(struct ibv_pd *pd)
{
	const struct hca_mr_attr attr = {.kind = MR_NULL, .length = SIZE_MAX, .access = IBV_ACCESS_LOCAL_WRITE};

	if (object_refused("ibv_alloc_null_mr", NULL, pd))
		return NULL;
	return mr_new(pd, "ibv_alloc_null_mr", NULL, &attr, 0);
}

static int check_dm_mr(struct ibv_pd *pd, const struct user_dm *dm, uint64_t offset, size_t length, unsigned int access)
{
	struct hca *hca = hca_of_context(pd->context);
	const unsigned int allowed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;

	if (access & ~allowed)
		return REFUSE(hca, "ibv_reg_dm_mr", EINVAL, RULE_DM_MR_ACCESS, access, allowed);
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return REFUSE(hca, "ibv_reg_dm_mr", EINVAL, RULE_DM_MR_ZERO_BASED, access);
	if (!dm_contains(dm, offset, length))
		return REFUSE(hca, "ibv_reg_dm_mr", EINVAL, RULE_DM_RANGE, offset, length, dm->length);
	if (!dm_aligned(offset, length))
		return REFUSE(hca, "ibv_reg_dm_mr", EINVAL, RULE_DM_ALIGNMENT, offset, length, 1 << LIMIT_DM_ALIGN_LOG);
	return mr_check_access(hca, "ibv_reg_dm_mr", access);
}

struct ibv_mr *softhca_ibv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *base, uint64_t offset, size_t length,
				     unsigned int access)
{
	struct user_dm *dm = to_user_dm(base);
	struct hca_mr_attr attr = {.kind = MR_DEVICE_MEMORY, .length = length, .access = access};
	struct handle_table *handles;
	struct ibv_mr *mr;
	int error;

	if (object_refused("ibv_reg_dm_mr", NULL, pd) || object_refused("ibv_reg_dm_mr", pd->context, base))
		return NULL;
	handles = to_user_context(base->context)->handles;
	error = check_dm_mr(pd, dm, offset, length, access);
	if (!error && handle_get(handles, base->handle))
		error = REFUSE(hca_of_context(pd->context), "ibv_reg_dm_mr", ENOENT, RULE_HANDLE_GONE, base->handle);
	if (error) {
		errno = error;
		return NULL;
	}
	attr.addr = (char *)dm->addr + offset;
	mr = mr_new(pd, "ibv_reg_dm_mr", NULL, &attr, base->handle);
	if (!mr)
		handle_put(handles, base->handle);
	return mr;
}

int softhca_ibv_dereg_mr(struct ibv_mr *base)
{
	struct user_mr *mr = to_user_mr(base);
	struct handle_table *handles;
	int error;

	if (object_refused("ibv_dereg_mr", NULL, base))
		return errno;
	handles = to_user_context(base->context)->handles;
	LINT(mr_deregistering, mr);
	error = -hca_mr_deregister(mr->key);
	if (error)
		return error;
	object_leave(&mr->alive);
	handle_remove(handles, HANDLE_MR, base->handle, NULL);
	if (mr->kind == MR_DEVICE_MEMORY)
		handle_put(handles, mr->dm_handle);
	if (keeps_pd(mr))
		user_pd_put(to_user_pd(base->pd));
	free(mr);
	return 0;
}
