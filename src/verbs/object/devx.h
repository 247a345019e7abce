/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's side of mlx5dv_devx_*(3), and the command interface of a context (devx/devx.h).
 *
 * Closing the context frees the objects that the program has not freed, as a kernel does. verbs.context.mutex covers
 * the list.
 */
#ifndef SOFTHCA_VERBS_OBJECT_DEVX_H
#define SOFTHCA_VERBS_OBJECT_DEVX_H

#include <errno.h>

#include "devx/devx.h"
#include "verbs/object/objects.h"

/* Entry in the list of the context. */
struct devx_handle {
	struct devx_handle *next, **link;
	void *memory; /* contains this handle */
	struct alive *alive;
};

struct user_devx_object {
	struct devx_object *device; /* first: the public structure has no members */
	struct ibv_context *context;
	struct devx_handle handle;
	struct alive alive;
};

struct user_umem {
	struct mlx5dv_devx_umem base;
	struct ibv_context *context;
	struct devx_handle handle;
	struct alive alive;
};

struct user_uar {
	struct mlx5dv_devx_uar base;
	struct ibv_context *context;
	struct devx_handle handle;
	struct alive alive;
};

struct user_event_channel {
	struct mlx5dv_devx_event_channel base;
	struct devx_channel *device;
	struct ibv_context *context;
	struct devx_handle handle;
	struct alive alive;
};

struct user_responses {
	struct mlx5dv_devx_cmd_comp base;
	struct devx_responses *device;
	struct ibv_context *context;
	struct devx_handle handle;
	struct alive alive;
};

/** Returns @error, and stores it in errno unless it is 0: programs read either. */
static inline int with_errno(int error)
{
	if (error)
		errno = error;
	return error;
}

/** Returns the command interface of @context, created at first use. NULL with errno set on failure. Any thread. */
struct devx *user_devx(struct ibv_context *context);

/** Adds @handle to the list. The object at @memory is already in the table of live objects. */
void devx_handle_enter(struct ibv_context *context, struct devx_handle *handle, void *memory, struct alive *alive);
/** Removes @handle from the list, and its object from the table of live objects. The caller frees the object. */
void devx_handle_leave(struct ibv_context *context, struct devx_handle *handle);

/** Destroys all objects made by commands, and frees the program's handles. */
void user_devx_close(struct user_context *context);

#endif
