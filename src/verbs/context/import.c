/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3): create further driver objects of device
 * objects, by handle. An imported object can be destroyed once, through any of its driver objects; the others can
 * then only be unimported.
 */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "core/cancellation.h"
#include "core/descriptor.h"
#include "explain/explain.h"
#include "verbs/context/context.h"
#include "verbs/memory/dm.h"

struct ibv_context *softhca_ibv_import_device(int cmd_fd)
{
	WITHOUT_CANCELLATION;
	struct handle_table *handles;
	struct ibv_device *device;
	int error;

	/*
	 * An adapter's command descriptor is a character device: EINVAL if @cmd_fd is not open, ENODEV if it belongs to
	 * no context.
	 */
	error = user_context_find(cmd_fd, &device, &handles);
	if (error) {
		struct hca *hca = hca_device(0);

		error = error == -EBADF ? EINVAL : ENODEV;
		errno = hca ? REFUSE(hca, "ibv_import_device", error, RULE_IMPORT_DESCRIPTOR, cmd_fd) : error;
		return NULL;
	}
	descriptor_adopt(cmd_fd);
	return user_context_new(device, cmd_fd, handles);
}

/* Returns false with errno set on failure. */
static bool import_find(struct ibv_context *context, const char *call, enum handle_kind kind, uint32_t handle,
			struct handle_entry *entry)
{
	/*
	 * Before the lookup, because another thread may destroy the device object while this one creates the driver
	 * object.
	 */
	handle_imported();
	if (handle_find(to_user_context(context)->handles, kind, handle, entry))
		return true;
	errno = REFUSE(hca_of_context(context), call, ENOENT, RULE_IMPORT_HANDLE, handle);
	return false;
}

struct ibv_pd *softhca_ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct handle_entry entry;
	struct user_pd *pd;

	if (!import_find(context, "ibv_import_pd", HANDLE_PD, pd_handle, &entry))
		return NULL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->base.context = context;
	pd->base.handle = pd_handle;
	pd->device = entry.pd;
	pd->references = 1;
	queue_lock_init(&pd->lock, LOCK_LEVEL_PD, false);
	object_enter(&pd->base, &pd->alive, context);
	return &pd->base;
}

/* A program may unimport a PD before it destroys objects over it: the last of them frees the PD. */
void softhca_ibv_unimport_pd(struct ibv_pd *pd)
{
	if (object_unknown("ibv_unimport_pd", pd))
		return;
	/* A parent domain has no handle of its own, so it was not imported. */
	if (to_user_pd(pd)->parent)
		return;
	object_leave(&to_user_pd(pd)->alive);
	user_pd_put(to_user_pd(pd));
}

struct ibv_mr *softhca_ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct handle_entry entry;
	struct user_mr *mr;

	if (object_refused("ibv_import_mr", NULL, pd))
		return NULL;
	if (!import_find(pd->context, "ibv_import_mr", HANDLE_MR, mr_handle, &entry))
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->base.context = pd->context;
	mr->base.pd = pd;
	mr->base.length = entry.length;
	mr->base.handle = mr_handle;
	mr->base.lkey = mkey_number(entry.key);
	mr->base.rkey = entry.mr_kind == MR_NULL ? 0 : mr->base.lkey;
	mr->key = entry.key;
	mr->kind = entry.mr_kind;
	mr->start = entry.start;
	mr->access = entry.access;
	mr->dm_handle = entry.dm_handle;
	mr->imported = true;
	user_pd_get(to_user_pd(pd));
	object_enter(&mr->base, &mr->alive, pd->context);
	return &mr->base;
}

void softhca_ibv_unimport_mr(struct ibv_mr *mr)
{
	if (object_unknown("ibv_unimport_mr", mr))
		return;
	object_leave(&to_user_mr(mr)->alive);
	user_pd_put(to_user_pd(mr->pd));
	free(to_user_mr(mr));
}

struct ibv_dm *softhca_ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct handle_entry entry;

	if (!import_find(context, "ibv_import_dm", HANDLE_DM, dm_handle, &entry))
		return NULL;
	return dm_new(context, entry.dm, entry.length, dm_handle);
}

void softhca_ibv_unimport_dm(struct ibv_dm *dm)
{
	if (object_unknown("ibv_unimport_dm", dm))
		return;
	object_leave(&to_user_dm(dm)->alive);
	free(to_user_dm(dm));
}
