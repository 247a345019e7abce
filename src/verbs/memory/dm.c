/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_alloc_dm(3), ibv_free_dm(3), ibv_memcpy_to_dm(3), ibv_memcpy_from_dm(3). */
#include "verbs/memory/dm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/handles.h"
#include "verbs/object/ops.h"

bool dm_aligned(uint64_t offset, uint64_t length)
{
	return ((offset | length) & ((1u << LIMIT_DM_ALIGN_LOG) - 1)) == 0;
}

bool dm_contains(const struct user_dm *dm, uint64_t offset, uint64_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

/* Checks in the order of libmlx5: EFAULT takes precedence. */
static int dm_check_access(struct ibv_dm *base, const char *call, uint64_t offset, size_t length)
{
	struct user_dm *dm = to_user_dm(base);
	struct hca *hca = hca_of_context(base->context);

	if (!dm_contains(dm, offset, length))
		return REFUSE(hca, call, EFAULT, RULE_DM_RANGE, offset, length, dm->length);
	if (!dm_aligned(offset, length))
		return REFUSE(hca, call, EINVAL, RULE_DM_ALIGNMENT, offset, length, 1 << LIMIT_DM_ALIGN_LOG);
	return 0;
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	int error = dm_check_access(dm, "ibv_memcpy_to_dm", offset, length);

	if (!error && length)
		memcpy((char *)to_user_dm(dm)->addr + offset, host, length);
	return error;
}

static int copy_from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	int error = dm_check_access(dm, "ibv_memcpy_from_dm", offset, length);

	if (!error && length)
		memcpy(host, (char *)to_user_dm(dm)->addr + offset, length);
	return error;
}

struct ibv_dm *dm_new(struct ibv_context *context, void *addr, size_t length, uint32_t handle)
{
	struct user_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->base.context = context;
	dm->base.memcpy_to_dm = copy_to_dm;
	dm->base.memcpy_from_dm = copy_from_dm;
	dm->base.comp_mask = IBV_DM_MASK_HANDLE;
	dm->base.handle = handle;
	dm->addr = addr;
	dm->length = length;
	object_enter(&dm->base, &dm->alive, context);
	return &dm->base;
}

static int dm_allocate(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr, void **addr)
{
	struct hca *hca = hca_of_context(context);
	int error;

	if (attr->comp_mask)
		return REFUSE(hca, "ibv_alloc_dm", EINVAL, RULE_COMP_MASK, attr->comp_mask, 0);
	if (attr->length == 0 || attr->length > LIMIT_MAX_DM_SIZE)
		return REFUSE(hca, "ibv_alloc_dm", EINVAL, RULE_DM_LENGTH, attr->length, LIMIT_MAX_DM_SIZE);
	error = -hca_dm_alloc(to_user_context(context)->device, attr->length, attr->log_align_req, addr);
	if (error == EINVAL)
		return REFUSE(hca, "ibv_alloc_dm", error, RULE_DM_LOG_ALIGN, attr->log_align_req, LIMIT_MAX_DM_SIZE);
	if (error)
		return REFUSE(hca, "ibv_alloc_dm", error, RULE_DM_FULL, attr->length, LIMIT_MAX_DM_SIZE);
	return 0;
}

struct ibv_dm *softhca_ibv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct user_context *owner = to_user_context(context);
	struct handle_entry entry = {.kind = HANDLE_DM, .length = attr->length};
	struct ibv_dm *dm = NULL;
	uint32_t handle;
	int error = dm_allocate(context, attr, &entry.dm);

	if (error) {
		errno = error;
		return NULL;
	}
	error = handle_add(owner->handles, &entry, &handle);
	if (!error)
		dm = dm_new(context, entry.dm, entry.length, handle);
	if (!dm) {
		if (!error)
			handle_remove(owner->handles, HANDLE_DM, handle, NULL);
		hca_dm_free(owner->device, entry.dm, entry.length);
		errno = ENOMEM;
	}
	return dm;
}

int softhca_ibv_free_dm(struct ibv_dm *base)
{
	struct user_context *owner;
	struct handle_entry entry;
	struct hca *hca;

	if (object_refused("ibv_free_dm", NULL, base))
		return errno;
	owner = to_user_context(base->context);
	hca = hca_of_context(base->context);
	switch (handle_remove(owner->handles, HANDLE_DM, base->handle, &entry)) {
	case 0:
		break;
	case -EBUSY:
		return refuse_ignorable(hca, "ibv_free_dm", EBUSY, RULE_DM_IN_USE, FIGURES(entry.references));
	default:
		return REFUSE(hca, "ibv_free_dm", ENOENT, RULE_HANDLE_GONE, base->handle);
	}
	object_leave(&to_user_dm(base)->alive);
	hca_dm_free(owner->device, entry.dm, entry.length);
	free(to_user_dm(base));
	return 0;
}
