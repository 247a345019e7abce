/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's side of the command interface, see verbs/object/devx.h. */
#include "verbs/object/devx.h"

#include <errno.h>
#include <stdlib.h>

struct devx *user_devx(struct ibv_context *base)
{
	struct user_context *context = to_user_context(base);
	struct devx *devx;
	int error = 0;

	pthread_mutex_lock(&base->mutex);
	if (!context->devx)
		error = -devx_open(hca_of_context(base), context->device, &context->devx);
	devx = context->devx;
	pthread_mutex_unlock(&base->mutex);
	if (error)
		errno = error;
	return devx;
}

void devx_handle_enter(struct ibv_context *base, struct devx_handle *handle, void *memory, struct alive *alive)
{
	struct devx_handle **first = &to_user_context(base)->devx_handles;

	handle->memory = memory;
	handle->alive = alive;
	pthread_mutex_lock(&base->mutex);
	handle->next = *first;
	if (handle->next)
		handle->next->link = &handle->next;
	handle->link = first;
	*first = handle;
	pthread_mutex_unlock(&base->mutex);
}

static void unlink_handle(struct devx_handle *handle)
{
	*handle->link = handle->next;
	if (handle->next)
		handle->next->link = handle->link;
	object_leave(handle->alive);
}

void devx_handle_leave(struct ibv_context *base, struct devx_handle *handle)
{
	pthread_mutex_lock(&base->mutex);
	unlink_handle(handle);
	pthread_mutex_unlock(&base->mutex);
}

void user_devx_close(struct user_context *context)
{
	struct devx_handle *handle;

	pthread_mutex_lock(&context->verbs.context.mutex);
	while ((handle = context->devx_handles)) {
		context->devx_handles = handle->next;
		object_leave(handle->alive);
		free(handle->memory);
	}
	if (context->devx)
		devx_close(context->devx);
	context->devx = NULL;
	pthread_mutex_unlock(&context->verbs.context.mutex);
}
