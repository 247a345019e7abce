/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's side of mlx5dv_devx_*(3): what a program's pointers lead to, and the command interface of a context (devx/devx.h).
 *
 * Made by the calls of mlx5dv and freed by them; what is left when the context is closed goes with it, as a kernel has it. The list
 * of a context is under verbs.context.mutex.
 */
#ifndef SOFTHCA_VERBS_OBJECT_DEVX_H
#define SOFTHCA_VERBS_OBJECT_DEVX_H

#include <errno.h>

#include "devx/devx.h"
#include "verbs/object/objects.h"

/* A member of each: in the list of its context. */
struct devx_handle {
	struct devx_handle *next, **link;
	void *memory; /* of the object that it is a member of */
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

/** @error, and errno unless it is 0: programs read either. */
static inline int with_errno(int error)
{
	if (error)
		errno = error;
	return error;
}

/** The command interface of @context, made at first use. NULL with errno set. Any thread. */
struct devx *user_devx(struct ibv_context *context);

/** Lists @handle, of an object at @memory that is in the table of those that are alive. */
void devx_handle_enter(struct ibv_context *context, struct devx_handle *handle, void *memory, struct alive *alive);
/** Takes it out, and the object out of the table. The caller frees the object. */
void devx_handle_leave(struct ibv_context *context, struct devx_handle *handle);

/** For the closing of a context: destroys all that was made by commands, and frees what the program has of it. */
void user_devx_close(struct user_context *context);

#endif
